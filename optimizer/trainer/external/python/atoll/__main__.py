"""python3 -m atoll is the program atoll, which comes with the wheel."""

import os
import pathlib
import subprocess
import shutil
import sys
import sysconfig


def find():
    """The path of the program: where pip puts scripts of this Python, or on PATH."""
    name = "atoll.exe" if os.name == "nt" else "atoll"
    schemes = [sysconfig.get_default_scheme() if hasattr(sysconfig, "get_default_scheme") else None, os.name + "_user"]
    for scheme in schemes:
        folder = sysconfig.get_path("scripts", scheme) if scheme in sysconfig.get_scheme_names() else sysconfig.get_path("scripts")
        if folder and (pathlib.Path(folder) / name).is_file():
            return str(pathlib.Path(folder) / name)
    return shutil.which("atoll")


def main():
    """Becomes the program."""
    program = find()
    if program is None:
        sys.exit("the program atoll is not here: install the wheel of this system, or put atoll on PATH")
    if os.name == "nt":  # there a process cannot become another
        sys.exit(subprocess.run([program, *sys.argv[1:]]).returncode)
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
