"""Live pages for browsers: one front end (``static/``), fed with moments of whatever has nodes, edges and estimates."""
