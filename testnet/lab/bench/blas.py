# Times matrix products of a BLAS library, or of PyTorch where the library is called torch: for each line of stdin, a JSON object with form, m, k, n and
# seconds, it answers with one of the median and the best seconds of a call.
import ctypes
import json
import random
import statistics
import sys
import time

name, threads, precision = sys.argv[1], int(sys.argv[2]), sys.argv[3]
if name == "torch":
    import torch
    torch.set_num_threads(threads)
    dtype = {"f32": torch.float32, "bf16": torch.bfloat16}[precision]
else:
    try:
        library = ctypes.CDLL(name)
        sgemm = library.cblas_sgemm
    except (OSError, AttributeError) as error:
        sys.exit(f"cannot use {name}: {error}")
    if hasattr(library, "openblas_set_num_threads"):
        library.openblas_set_num_threads(threads)
    sgemm.restype = None
    sgemm.argtypes = [ctypes.c_int] * 6 + [ctypes.c_float, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p,
                                           ctypes.c_int, ctypes.c_float, ctypes.c_void_p, ctypes.c_int]
ROW_MAJOR, NORMAL, TRANSPOSED = 101, 111, 112


def operand(n):
    return (ctypes.c_float * n)(*(random.gauss(0, 1) for _ in range(n)))


def timed(call, calls):
    start = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - start) / calls


def torch_product(form, m, k, n):
    """The product of matrices of PyTorch as they are stored; all of them have its data type."""
    stored = lambda rows, cols, turned: torch.randn((cols, rows) if turned else (rows, cols)).to(dtype)
    a, b = stored(m, k, form[0] == "T"), stored(k, n, form[1] == "T")
    a, b = a.T if form[0] == "T" else a, b.T if form[1] == "T" else b
    c = torch.empty(m, n, dtype=dtype)
    return lambda m=m: torch.mm(a[:m], b, out=c[:m])


operands = {}


def blas_product(form, m, k, n):
    key = (form, m, k, n)
    if key not in operands:
        operands.clear()  # one shape at a time
        operands[key] = operand(m * k), operand(k * n), (ctypes.c_float * (m * n))()
    a, b, c = operands[key]
    modes = [TRANSPOSED if letter == "T" else NORMAL for letter in form]
    lda, ldb = (m if form[0] == "T" else k), (k if form[1] == "T" else n)
    return lambda m=m: sgemm(ROW_MAJOR, *modes, m, n, k, 1, a, lda, b, ldb, 0, c, n)


calls_of = {}


def measure(form, m, k, n, seconds):
    key = (form, m, k, n)
    if key not in calls_of:
        calls_of.clear()
        calls_of[key] = (torch_product if name == "torch" else blas_product)(form, m, k, n)
    call = calls_of[key]
    # What a call from Python takes beside the product: one of no rows.
    empty = min(timed(lambda: call(0), 100) for _ in range(5))
    call()
    calls = max(1, round(0.001 / max(timed(call, 1), 1e-7)))
    parts, end = [], time.perf_counter() + seconds
    while len(parts) < 3 or time.perf_counter() < end:
        parts.append(max(timed(call, calls) - empty, 1e-9))
    return {"seconds": statistics.median(parts), "best": min(parts)}


def settle():
    """Waits until the library's threads sleep: they watch for work for some 100 ms after a product, on cores
    of which whoever measures next would have too few."""
    for _ in range(200):
        busy = time.process_time()
        time.sleep(0.01)
        if time.process_time() - busy < 0.001:
            return


for line in sys.stdin:
    times = measure(**json.loads(line))
    settle()
    print(json.dumps(times), flush=True)
