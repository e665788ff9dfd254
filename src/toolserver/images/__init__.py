"""Images: recognising what a file is, and making an image smaller."""
