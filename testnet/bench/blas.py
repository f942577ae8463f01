# Times matrix products of a BLAS library: for each line of stdin, a JSON object with form, m, k, n and
# seconds, it answers with one of the median and the best seconds of a call.
import ctypes
import json
import random
import statistics
import sys
import time

try:
    library = ctypes.CDLL(sys.argv[1])
    sgemm = library.cblas_sgemm
except (OSError, AttributeError) as error:
    sys.exit(f"cannot use {sys.argv[1]}: {error}")
if hasattr(library, "openblas_set_num_threads"):
    library.openblas_set_num_threads(int(sys.argv[2]))
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


operands = {}


def measure(form, m, k, n, seconds):
    key = (form, m, k, n)
    if key not in operands:
        operands.clear()  # one shape at a time
        operands[key] = operand(m * k), operand(k * n), (ctypes.c_float * (m * n))()
    a, b, c = operands[key]
    modes = [TRANSPOSED if letter == "T" else NORMAL for letter in form]
    lda, ldb = (m if form[0] == "T" else k), (k if form[1] == "T" else n)
    call = lambda m=m: sgemm(ROW_MAJOR, *modes, m, n, k, 1, a, lda, b, ldb, 0, c, n)
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
