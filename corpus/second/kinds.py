"""Own the kinds of paper of the second corpus: what each is headed, opened and closed with, and how it lays out values.

Pure data but for the layouts it names. Slots: ref, today, office, partner, a, b, c (people), by (who signs).
"""

import enum
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from gsum.corpus.second import papers, tables
from gsum.corpus.second.draft import Draft
from gsum.corpus.second.lines import Block


class Mix(enum.Enum):
    """Where the other lines of a paper go."""

    BETWEEN = "between its blocks"
    AFTER = "after its blocks"
    BEFORE_LAST = "between its blocks, the last of which stays last"
    NUMBERED = "between its blocks, and all are numbered"


@dataclass(frozen=True)
class Kind:
    """One kind of paper; `dates_itself` if its layout states the earlier values."""

    name: str
    layouts: tuple[Callable[[Draft], list[Block]], ...]
    heads: tuple[tuple[str, ...], ...]
    openers: tuple[str, ...]
    feet: tuple[str, ...]
    mix: Mix = Mix.BETWEEN
    dates_itself: bool = False


_SHEET_HEADS: Final = (
    ("{office}", "Sheet {ref}, drawn up {today}"),
    ("SURVEY no. {ref} ({today})",),
    ("{today}. Return no. {ref} to {partner}", "Compiled by {by}"),
    ("Overview {ref}, state of {today}", "{office}, back office"),
)
_SHEET_OPENERS: Final = (
    "Figures by {a}, lines ruled by {b}.",
    "The layout follows the wishes of {partner}.",
    "Where there is a dash we have nothing to add.",
    "Corrections in pencil, please, and only by {c}.",
)
_SHEET_FEET: Final = (
    "Checked: {by}",
    "{by} for {office}",
    "One copy to {partner}, one to the drawer. {by}",
    "End of sheet",
)
_NOTE_HEADS: Final = (
    ("{by} to {a}, {today}, no. {ref}",),
    ("Note {ref}", "{today}, from {by}, to be passed round"),
    ("{office}: slip {ref} of {today}",),
)
_NOTE_OPENERS: Final = (
    "Nothing here is secret and little of it is news.",
    "Please read this before you ring.",
    "Written standing up, hence the hand.",
)
_NOTE_FEET: Final = ("{by}", "Greetings, {by}", "Over. {by}", "(signed) {by}")

KINDS: Final = (
    Kind("wide table", (tables.wide,), _SHEET_HEADS, _SHEET_OPENERS, _SHEET_FEET),
    Kind("pipe table", (tables.pipes,), _SHEET_HEADS, _SHEET_OPENERS, _SHEET_FEET),
    Kind("columns", (tables.transposed, tables.long), _SHEET_HEADS, _SHEET_OPENERS, _SHEET_FEET),
    Kind("revised table", (tables.revision,), _SHEET_HEADS, _SHEET_OPENERS, _SHEET_FEET, dates_itself=True),
    Kind("blocks", (tables.blocks,), _NOTE_HEADS, _NOTE_OPENERS, _NOTE_FEET),
    Kind("records", (tables.records,), _NOTE_HEADS, _NOTE_OPENERS, _NOTE_FEET),
    Kind("bullets", (papers.bullets,), _NOTE_HEADS, _NOTE_OPENERS, _NOTE_FEET),
    Kind(
        "letter",
        (papers.letter,),
        (
            ("{today}, ref. {ref}", "Dear {a},"),
            ("{office} to {partner}", "{today}, our no. {ref}"),
            ("To {a} and whom it concerns", "{today} ({ref})"),
        ),
        (
            "Your letter lay under the cat and has only now been found.",
            "It was good to hear that the crossing was smooth.",
            "Forgive the delay; we have had the painters in.",
        ),
        ("Ever yours, {by}", "With all good wishes, {by}", "Believe me, dear {a}, yours truly, {by}"),
    ),
    Kind(
        "thread",
        (papers.thread,),
        (
            ("From: {by}", "To: {a}, {b}", "Date: {today}", "Re: open points, {ref}"),
            ("{by} > {a} > all desks", "{today}, thread {ref}"),
        ),
        (
            "Answers below, as usual.",
            "Thanks for the reminder. The news first:",
            "What {c} wrote is overtaken and stands at the foot.",
        ),
        ("Sent from the desk of {by}", "{by}"),
        Mix.BEFORE_LAST,
        dates_itself=True,
    ),
    Kind(
        "minutes",
        (papers.minutes,),
        (
            ("Committee of {office}, sitting of {today}, paper {ref}", "There: {a}, {b}, {c}"),
            ("Protocol {ref}", "{today}; {a} presiding, {by} writing"),
        ),
        ("The agenda was taken as read.", "{b} moved that windows be opened, and they were."),
        ("Closed with thanks. {by}", "Protocol: {by}. Agreed: {a}"),
        Mix.NUMBERED,
    ),
    Kind(
        "diary",
        (papers.diary,),
        (
            ("{office}, day book, pages up to {today}", "no. {ref}"),
            ("Day book {ref}, closed {today}", "A later entry on the same matter replaces an earlier one."),
        ),
        ("Entries by whoever had the pen.", "Weather left out to save ink."),
        ("Ruled off {today}. {by}", "Read and found legible: {by}"),
        Mix.AFTER,
        dates_itself=True,
    ),
    Kind(
        "questions",
        (papers.questions,),
        (
            ("Inquiry {ref} by {partner}", "Answered {today} by {by}"),
            ("Questions put by {a}, answers by {by}, {today}", "Folio {ref}"),
        ),
        ("Asked in a hurry and answered at leisure.", "The order of the questions is that of the caller."),
        ("No further questions. {by}", "Copied fair by {by}"),
    ),
)
