"""The style sheet of the report's page. Pure text."""

from __future__ import annotations

from typing import Final

STYLE: Final = """\
:root { color-scheme: light dark; --line: #c9ced6; --soft: #f3f5f8; --mute: #5b6470; --warn: #9a5b00; }
@media (prefers-color-scheme: dark) {
  :root { --line: #3d444d; --soft: #1c2128; --mute: #9aa4b0; --warn: #e3a64a; }
}
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1480px; margin: 2rem auto; padding: 0 1.5rem; }
body { background: Canvas; color: CanvasText; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; margin: 0 0 1rem; }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; border-bottom: 1px solid var(--line); padding-bottom: .2rem; }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem; }
p { color: var(--mute); max-width: 75ch; }
p:empty { display: none; }
dl { display: grid; grid-template-columns: fit-content(40%) 1fr; gap: .15rem 1rem; margin: 0; }
dt { color: var(--mute); }
dd { margin: 0; }
.wide { overflow-x: auto; margin-bottom: .8rem; }
table { border-collapse: separate; border-spacing: 0; font-size: .76rem; overflow-wrap: normal; }
th, td { text-align: left; padding: .28rem .36rem; border-bottom: 1px solid var(--line); vertical-align: top; }
th { background: var(--soft); font-weight: 600; vertical-align: bottom; }
td { min-width: 4.2rem; }
th:first-child, td:first-child { position: sticky; left: 0; white-space: nowrap; }
td:first-child { background: Canvas; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
td.n { white-space: nowrap; min-width: 0; }
details { margin: .8rem 0; }
section { border: 1px solid var(--line); border-radius: 6px; padding: .2rem 1rem .6rem; margin: .8rem 0; }
.when { font-size: .75rem; letter-spacing: .06em; color: var(--warn); }
.when { border: 1px solid; border-radius: 3px; padding: 0 .3rem; }
.pending { color: var(--warn); }
blockquote { margin: .2rem 0 .5rem; padding-left: .8rem; border-left: 3px solid var(--line); }
cite { display: block; font-style: normal; font-size: .8rem; color: var(--mute); }
code { font-size: .85em; }
"""
