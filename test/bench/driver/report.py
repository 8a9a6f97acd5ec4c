"""How figures are compared and printed. A ratio is taken pair by pair (what was measured right after one another), and of the ratios the
median counts."""

from statistics import median


def number(value):
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 100 else f"{value:.2f}"


def ratios(ours, theirs):
    return [a / b for a, b in zip(ours, theirs)]


def verdict(reached, target):
    return f"target {target}: {'reached' if reached else 'MISSED'}"


def line(identity, setting, what, figures, judged=""):
    """One line: id | transport, batching, queue type | what is compared | figures | target."""
    parts = [f"{identity:<2}", f"{setting:<36}", f"{what:<47}", figures]
    print(" | ".join(parts + ([judged] if judged else [])), flush=True)


def ratio_line(identity, setting, what, ours, theirs, unit, at_least=None, at_most=None, named=None):
    """Prints the median, least and greatest ratio of `ours` to `theirs`; returns the median."""
    values = ratios(ours, theirs)
    middle = median(values)
    judged = ""
    if at_least is not None:
        judged = verdict(middle >= at_least, f">= {at_least:.2f}{named or ''}")
    if at_most is not None:
        judged = verdict(middle <= at_most, f"<= {at_most:.2f}{named or ''}")
    figures = (f"ratio {middle:.3f} ({min(values):.2f} to {max(values):.2f}), "
               f"{number(median(ours))} against {number(median(theirs))} {unit}")
    line(identity, setting, what, figures, judged)
    return middle
