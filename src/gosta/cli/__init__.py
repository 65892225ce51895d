"""The command line: parses, calls, prints. Nothing heavy is imported before a command needs it."""
