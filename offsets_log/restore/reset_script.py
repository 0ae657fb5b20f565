"""What the scripts for ``kafka-consumer-groups.sh`` and ``kafka-share-groups.sh`` share.

Both tools exit with 0 even where they failed: only the word ``Error:`` at the beginning of a line shows it.
"""

RESET = r"""status=0
reset() {
    said=$("$tool" --reset-offsets "$@") || status=1
    printf '%s\n' "$said"
    case $said in *"
Error: "*) status=1 ;; esac
}
"""
"""A function that runs the tool once, and keeps in ``status`` whether it failed."""
EXIT = 'exit "$status"\n'
