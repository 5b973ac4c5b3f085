"""The page that an audit leaves behind: one HTML file, nothing else needed."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from featavg import __version__
from featavg.apps.audit.figures import cosine_figure, curve_figure
from featavg.plot import style as plots

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from featavg.auditing.audit import Audit

_STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --soft: #5d5d66; --paper: #fbfaf7; --card: #fff;
        --line: #dddbd5; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #ececf0; --soft: #a2a2ad; --paper: #16171a; --card: #1f2125; --line: #383a40; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1.5rem 1rem 4rem; background: var(--paper);
       color: var(--ink); font: 1.0625rem/1.55 system-ui, sans-serif; }
h1 { font-size: 1.7rem; margin: 0 0 .2rem; } h2 { font-size: 1.2rem; margin: 2.2rem 0 .6rem; }
.lead { font-size: 1.2rem; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; width: 100%; }
th, td { padding: .45rem .7rem; border-bottom: 1px solid var(--line); text-align: right; }
th:first-child, td:first-child { text-align: left; }
.figures { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fit, minmax(18rem, 1fr)); }
figure { margin: 0; background: #fff; border: 1px solid var(--line); border-radius: .5rem;
         padding: .5rem; }
figure img { width: 100%; height: auto; display: block; }
@media print { body { background: #fff; color: #000; max-width: none; } }
"""


def page(audit: Audit, source: str, hints: Sequence[str] = ()) -> str:
    """Return the audit as an HTML page.

    `source` says where the points came from; `hints` are sentences below the verdict.
    """
    rows = "".join(
        f"<tr><th scope='row'>{escape(name)}</th><td>{coarse}</td><td>{fine}</td></tr>"
        for name, coarse, fine in table_rows(audit)
    )
    sizes = ", ".join(f"{escape(str(c))}: {n}" for c, n in audit.subclasses.items())
    reasons = "".join(f"<li>{escape(reason)}</li>" for reason in audit.reasons)
    below = "".join(f"<p>{escape(hint)}</p>\n" for hint in hints)
    why = f"<h2>Why the factor is not reached</h2><ul>{reasons}</ul>" if reasons else ""
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
<title>Audit of {escape(source)}</title><style>{_STYLE}</style></head><body>
<h1>Audit of {escape(source)}</h1>
<p class="soft">{audit.trained} points trained on, {audit.held_out} held out before anything was
looked at; radii of {audit.measured} of these. featavg {escape(__version__)}.</p>
<p class="lead">{escape(audit.verdict)}</p>
{below}<div class="scroll"><table>
<thead><tr><th></th><th>coarse labels</th><th>subclasses</th></tr></thead>
<tbody>{rows}</tbody></table></div>
{why}
<h2>Pictures</h2><div class="figures">
<figure>{
        _image(curve_figure(audit), "Certified accuracy of both networks over the radius")
    }</figure>
<figure>{_image(cosine_figure(audit), "Cosines between the means of subclasses")}</figure></div>
<h2>How to read this</h2>
<p>Subclasses of each class ({sizes}) were {
        "given" if audit.given else "found on the training points"
    }. A radius is certified: no change of the features of a smaller L2 norm changes the
decision; it is 0 where the decision is wrong. A typical point is {audit.norm:.4g} from the mean of
all. The averaging index is 1 where neurons weigh all subclasses of their class alike, 0 where each
has one of its own. The universal direction is one perturbation for each class, the same for all
its points.</p>
</body></html>
"""


def table_rows(audit: Audit) -> list[tuple[str, str, str]]:
    """Return what is shown of the two networks: a name and two values in each row."""
    coarse, fine = audit.coarse, audit.fine
    predicted = "–" if audit.predicted_ratio is None else f"{audit.predicted_ratio:.2f}"
    share = f"broken by the universal direction of norm {coarse.universal.radius:.3g}"
    rows = [
        ("clean accuracy", f"{coarse.accuracy:.1%}", f"{fine.accuracy:.1%}"),
        ("averaging index", _known(coarse.averaging_index), _known(fine.averaging_index)),
        ("median certified radius", f"{coarse.median_radius:.3g}", f"{fine.median_radius:.3g}"),
        (
            "over the typical norm",
            f"{coarse.median_radius / audit.norm:.2f}",
            f"{fine.median_radius / audit.norm:.2f}",
        ),
        (share, f"{coarse.universal.broken:.0%}", f"{fine.universal.broken:.0%}"),
    ]
    if audit.divided:
        rows.append(("times as robust (theory)", "1", f"{_known(audit.ratio)} ({predicted})"))
    return rows


def _known(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:.2f}"


def _image(figure: Figure, text: str) -> str:
    content = base64.b64encode(plots.rendered(figure, "png")).decode()
    return f'<img alt="{escape(text)}" src="data:image/png;base64,{content}">'
