"""The command line: thin click commands over `offsets_log`. Start at `offsets_log_cli.main`."""
