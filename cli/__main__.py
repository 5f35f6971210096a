"""`python -m gsum.cli`: the same as the console script."""

from gsum.cli.main import main

main()
