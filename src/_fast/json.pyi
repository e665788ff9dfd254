def count_values(text: bytes | str, most: int) -> int:
    """Return how many values a JSON text holds, keys of objects not counted, or `most` + 1 for more than `most`.

    Of a text that is not JSON, at least as many as a parser makes before it finds the error. Takes time in proportion
    to the text, without the GIL. Raises UnicodeEncodeError for a lone surrogate.
    """
