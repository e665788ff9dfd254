"""One module a tool: its arguments, its description, its handler. No HTTP and no JSON text."""
