"""Kernels of the hot paths, in Cython. They know bytes, descriptors and numbers; never JSON, HTTP or tool names."""
