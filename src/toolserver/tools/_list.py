"""The list of tools, in the order of GET /tools. Adding a tool touches this line and its module."""

from typing import Any

from toolserver.tools import edit, read, write
from toolserver.tools._tool import Tool

TOOLS: tuple[Tool[Any], ...] = (read.TOOL, write.TOOL, edit.TOOL)
