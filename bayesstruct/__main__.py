"""``python -m bayesstruct`` is the command ``bayesstruct``."""

from bayesstruct.app.cli import main

if __name__ == "__main__":
    main()
