"""The server's own files: `.kd` in a workspace, the state directory outside of it; identity and activity."""
