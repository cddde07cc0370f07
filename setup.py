"""Which packages are installed: those below ``bayesstruct``, and the folder ``models`` among them."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["bayesstruct", "bayesstruct.*"]), "bayesstruct.models"],
    package_dir={"bayesstruct.models": "models"},
)
