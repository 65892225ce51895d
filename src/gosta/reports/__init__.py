"""The report of a validation study: one page of HTML, or a PDF, from its results.

``content`` chooses the sections, which have files of their own, ``texts`` has the words,
``html_page`` and ``pdf_pages`` show it.
"""
