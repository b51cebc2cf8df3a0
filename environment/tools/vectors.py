"""vectors.py GOROOT FOLDER: makes in FOLDER a copy of the Go in GOROOT whose loads of the end of an array stay in it.

Go 1.27.0 to 1.27.4 load what is left of an array after whole vectors by reading a whole vector and masking it
afterwards (simd/archsimd/slice_gen_amd64.go). Where the array ends at the end of mapped memory the process dies with a
segmentation fault. The copy reads a vector only where it ends in the page of memory in which it begins. Of a Go that
loads in another way no copy is made. (go build -overlay cannot do it: it replaces nothing of a Go that was fetched as a
module.)
"""
import os
import re
import shutil
import sys

LOADS = os.path.join("src", "simd", "archsimd", "slice_gen_amd64.go")
UNSAFE = re.compile(r"^\treturn (Load(Float|Int|Uint)(\d+)x(\d+)Array)\(pa\w+\(s\)\)\.Masked\(.*\), l\n", re.M)


def guarded(text):
    """The source of the loads with a guard, or None if they need none."""
    functions = []

    def guard(found):
        load, kind, bits, lanes = found.groups()
        name, element = f"{kind}{bits}x{lanes}", kind.lower() + bits
        functions.append(f"""
//go:noinline
func copied{name}(s []{element}) {name} {{
	var whole [{lanes}]{element}
	copy(whole[:], s)
	return {load}(&whole)
}}
""")
        return f"\tif atPageEnd(unsafe.Pointer(&s[0]), {int(bits) * int(lanes) // 8}) {{\n\t\treturn copied{name}(s), l\n\t}}\n{found[0]}"

    text = UNSAFE.sub(guard, text)
    return functions and text + """
// atPageEnd tells whether so many bytes from p on end in another page of memory.
func atPageEnd(p unsafe.Pointer, bytes uintptr) bool { return uintptr(p)&4095 > 4096-bytes }
""" + "".join(functions)


def link(source, target):
    """Makes a copy of a file, which takes no space where the file system allows it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def main(goroot, folder):
    shutil.rmtree(folder, ignore_errors=True)
    with open(os.path.join(goroot, LOADS)) as file:
        text = guarded(file.read())
    if not text:
        return
    for place, folders, files in os.walk(goroot):
        folders[:] = [name for name in folders if name != "testdata"]
        target = os.path.join(folder, os.path.relpath(place, goroot))
        os.makedirs(target)
        for name in files:
            if not name.endswith("_test.go"):
                link(os.path.join(place, name), os.path.join(target, name))
    os.remove(os.path.join(folder, LOADS))
    with open(os.path.join(folder, LOADS), "w") as file:
        file.write(text)


if __name__ == "__main__":
    main(*sys.argv[1:])
