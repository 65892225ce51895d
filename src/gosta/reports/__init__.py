"""The report of a validation study: one page of HTML, or a PDF, from its results.

``content`` chooses what is said of which statistic, ``texts`` has the words, ``html_page`` and
``pdf_pages`` show it.
"""
