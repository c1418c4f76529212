"""Names of functions and of the files that they stand in: invented ones, and those of a few that everybody knows."""

CLASSES = (
    "Index", "Cache", "Query", "Ranker", "Session", "Shard", "Reader", "Writer", "Planner", "Matcher", "Merger",
    "Decoder", "Encoder", "Snippet", "Feature", "Model", "Ledger", "Router", "Journal", "Cursor", "Bloom", "Table",
    "Filter", "Tokenizer", "Scheduler", "Replica", "Snapshot", "Tracker", "Auction", "Profile", "Graph", "Batch",
)  # fmt: skip
"""Classes of a program's own code."""
METHODS = (
    "lookup", "insert", "scan", "score", "merge", "seek", "advance", "apply", "resolve", "collect", "expand", "prune",
    "sort", "rehash", "visit", "load", "store", "flush", "parse", "format", "compare", "split", "append", "evict",
    "touch", "probe", "rank", "fold", "clone", "reset", "commit", "trim",
)  # fmt: skip
"""What they do."""
HANDLERS = ("handle_get", "handle_put", "handle_batch", "handle_stream")
"""Where requests come in."""
KNOWN = {
    "libz": (
        "deflate_slow", "longest_match", "inflate_fast", "crc32_z", "deflate_fast", "adler32_z", "compress_block",
        "fill_window", "inflate", "inflate_table", "build_tree", "deflate_stored",
    ),
    "liballoc": (
        "operator new", "operator delete", "malloc", "free", "realloc", "calloc", "memalign",
    ),
    "libm": (
        "exp", "log", "pow", "sin", "cos", "expf", "logf", "tanh", "sqrt", "atan2", "fmod", "erf",
    ),
    "libstring": (
        "memcpy", "memmove", "memset", "memcmp", "strlen", "memchr", "strcmp", "strchr",
    ),
    "kernel": (
        "entry_syscall", "copy_user", "tcp_sendmsg", "tcp_recvmsg", "schedule", "pick_next_task", "page_fault",
        "clear_page", "futex_wait", "futex_wake", "epoll_wait", "skb_copy", "ip_output", "ip_rcv", "napi_poll",
        "try_to_wake_up", "update_curr", "hrtimer_interrupt", "ktime_get", "find_get_page", "vfs_read", "vfs_write",
        "fdget", "kmem_cache_alloc", "kmem_cache_free", "spin_lock", "softirq", "rcu_core", "mmap_region", "zap_pages",
        "tick_sched", "load_balance", "tcp_ack", "tcp_write_xmit", "sock_poll", "select_idle_sibling",
    ),
    "nic": (
        "nic_xmit", "nic_clean_rx", "nic_clean_tx", "nic_poll", "nic_alloc_buffers",
    ),
}  # fmt: skip
"""Functions of images that everybody knows, the hottest of a fleet first."""
METHODS_PER_CLASS = 6


def own_names(program: str, count: int) -> tuple[list[str], list[str]]:
    """Return the names of a program's own functions, `main` first, then those that take requests; and their files.

    Parameters
    ----------
    program : its name
    count : functions
    """
    space, first = identifier(program), sum(program.encode()) % len(CLASSES)
    handlers = handlers_of(count)
    names = ["main", *(f"{space}::Server::{method}" for method in HANDLERS[:handlers])]
    files = [f"{space}/main.cc", *[f"{space}/server.cc"] * handlers]
    for i in range(count - len(names)):
        name, file = _method(space, first, i)
        names.append(name)
        files.append(file)
    return names, files


def handlers_of(count: int) -> int:
    """Return how many of a program's `count` own functions take requests."""
    return min(len(HANDLERS), count // 2)


def library_names(library: str, count: int) -> tuple[list[str], list[str]]:
    """Return the names of a library's functions and their files; of the kernel and of modules too."""
    known = KNOWN.get(library, ())[:count]
    files = [f"{library}/{name.split('_')[0].replace(' ', '_')}.c" for name in known]
    space = identifier(library.removeprefix("lib"))
    invented = [_method(space, 0, i) for i in range(count - len(known))]
    return [*known, *(name for name, _ in invented)], [*files, *(file for _, file in invented)]


def identifier(text: str) -> str:
    """Return `text` as a name space can be called.

    Examples
    --------
    >>> identifier("heavyweight-01")
    'heavyweight_01'
    """
    return "".join(letter if letter.isalnum() else "_" for letter in text)


def _method(space: str, first: int, number: int) -> tuple[str, str]:
    """Return the name of a method, by its number, and its file."""
    of_class, of_method = divmod(number, METHODS_PER_CLASS)
    again, which = divmod(of_class, len(CLASSES))
    word = CLASSES[(first + which) % len(CLASSES)] + (str(again + 1) if again else "")
    method = METHODS[(5 * of_class + of_method) % len(METHODS)]
    return f"{space}::{word}::{method}", f"{space}/{word.lower()}.cc"
