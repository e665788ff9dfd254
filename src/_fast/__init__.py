"""Kernels of the hot paths, in Cython. They know bytes, descriptors and numbers, not HTTP or tool names.

Three know JSON, for speed: `lines` (the text of a file), `rows` (the rows of grep and glob) and `json` (how many values
a body has).
"""
