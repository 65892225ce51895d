"""The conversation of two neighbours, without I/O: messages, records, peer."""
