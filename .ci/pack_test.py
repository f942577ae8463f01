"""python3 .ci/pack_test.py: versions sort as their makers mean them, by dpkg and pip where those are here."""

import itertools
import shutil
import subprocess
import unittest

import pack

try:
    from pip._vendor.packaging.version import Version as Pip
except ImportError:  # a Python without pip
    Pip = None

# Each is older than the next.
ORDER = [
    "0.9.0", "1.0.0-alpha.1", "1.0.0-alpha.2", "1.0.0-beta.1", "1.0.0-rc.2", "1.0.0-rc.2-3-g0123abc", "1.0.0-rc.10", "1.0.0",
    "1.0.0-2-gfedc000", "1.0.0-10-g00aa11b", "1.0.1-rc.1", "1.0.1",
]


class Versions(unittest.TestCase):
    def test_forms(self):
        for named, debian, python in [
            ("1.2.0", "1.2.0", "1.2.0"),
            ("1.2.0-rc.1", "1.2.0~rc.1", "1.2.0rc1"),
            ("1.2.0-alpha.3", "1.2.0~alpha.3", "1.2.0a3"),
            ("1.2.0-beta.3-dirty", "1.2.0~beta.3+dirty", "1.2.0b3+dirty"),
            ("1.2.0-dirty", "1.2.0+dirty", "1.2.0+dirty"),
            ("1.2.0-7-g12ab34c", "1.2.0+7.g12ab34c", "1.2.0.post7+g12ab34c"),
            ("1.2.0-rc.1-7-g12ab34c-dirty", "1.2.0~rc.1+7.g12ab34c.dirty", "1.2.0rc1.post7+g12ab34c.dirty"),
        ]:
            version = pack.Version(named)
            self.assertEqual((version.debian(), version.python()), (debian, python))

    def test_refuses_what_would_sort_wrong(self):
        for named in ["1.2", "1.2.0-rc", "1.2.0-rc1", "1.2.0-next.1", "1.2.0-rc.1-7", "v1.2.0", ""]:
            with self.assertRaisesRegex(SystemExit, "a release is a tag such as"):
                pack.Version(named)

    @unittest.skipUnless(shutil.which("dpkg"), "no dpkg here")
    def test_order_of_debian(self):
        for older, newer in itertools.pairwise(pack.Version(named).debian() for named in ORDER):
            self.assertEqual(subprocess.run(["dpkg", "--compare-versions", older, "lt", newer]).returncode, 0, f"{older} < {newer}")

    @unittest.skipUnless(Pip, "no pip here")
    def test_order_of_pip(self):
        for older, newer in itertools.pairwise(pack.Version(named).python() for named in ORDER):
            self.assertLess(Pip(older), Pip(newer))
            self.assertEqual(str(Pip(older)), older, "not its normal form")


if __name__ == "__main__":
    unittest.main()
