"""Tables: validation, reading from files, and the data sets that come with the package.

Everything is loaded when it is first used, so that the command line can check a file at once.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
