"""The compiled engine: loops over exchanges, specialised and compiled for a protocol and a kernel.

`*_loop.py` are templates of the loops; they are compiled from their text, not imported.
"""
