"""Own what a dossier of the second corpus is about, and the values that facts may take.

Pure data, all of it invented, and none of it shared with the first corpus. Values hold no period, quotation mark,
brace or line break, and at most 40 characters.
"""

from typing import Final, NamedTuple


class Setting(NamedTuple):
    """What all documents of one dossier have in common."""

    title: str
    office: str
    partner: str
    year: int


FIRST_NUMBER: Final = 10
DOCUMENTS: Final = 12
FACTS: Final = 4
EDITED_SLOTS: Final = (0,)
"""The documents that have a version 2."""

STATUSES: Final = (
    "boxed and labelled", "waiting for a permit", "on the test bench", "stripped for cleaning", "approved for release",
    "blocked by the auditor", "out for engraving", "halfway through priming", "short of one lid", "soaking overnight",
    "paid for in full", "booked on the ferry", "being recounted", "dented at one corner", "back for a new seal",
    "under dispute", "cooling in the rack", "frozen until the review", "free of faults", "cleared by the laboratory",
    "in the paint queue", "missing its papers", "spoken for", "wrapped but not strapped", "awaiting a second opinion",
    "with the bookbinder", "overdue for oiling", "split into two lots", "fit for use", "set aside for the museum",
)  # fmt: skip

SITES: Final = (
    "Dock 9", "Ember House", "Plot 31", "Bay C2", "Fern Street", "Tower Room 6", "Loft 2", "Mill Annex", "Cabin 14",
    "Pier Head", "Stable Block", "Cold Room 3", "Rack 118", "East Vault", "Birch Landing", "Slate Barn",
    "Garrison Shed", "Observatory basement", "Wharf 22", "Old Laundry", "Toll Bridge store", "Lock 5",
    "Nursery Field", "Printworks attic", "Depot Nine", "Arch 40", "Mews 7", "Shaft 12", "Ridge Station",
    "Linden Court", "Barge Hendrika", "Schoolhouse cellar", "Hut 3 on the moor", "Weighbridge office",
)  # fmt: skip

MEASURES: Final = ("units", "units", "kg", "litres", "rolls", "cases", "bundles", "metres", "sheets", "pairs", "trays")

LABELS: Final[dict[str, tuple[str, ...]]] = {
    "delivery": ("Due", "Arrives", "Delivery", "Date promised", "Handover", "Expected"),
    "status": ("Status", "Condition", "State", "Stage", "How it stands"),
    "quantity": ("Quantity", "Count", "Amount", "On hand", "Total"),
    "site": ("Site", "Place", "Kept at", "Location", "Where"),
}
ARTICLES: Final = ("Article", "Product", "Item", "Lot", "Our code")

SETTINGS: Final = (
    Setting("The lighthouse tender's winter refit", "Bellrock Tender Office", "the lamp contractor", 1988),
    Setting("Linen and trolleys for the new wards", "Saint Ivo Infirmary Stores", "the ward sisters", 1991),
    Setting("Props and costumes between two seasons", "Marigold Playhouse", "the touring company", 1994),
    Setting("Seed potatoes, sacks and the frost", "Tarn Valley Growers", "the packing shed", 1985),
    Setting("Archive boxes on the move", "County Record Rooms", "the removal contractor", 1997),
    Setting("Fittings for the narrow-gauge coaches", "Culm Light Railway", "the coach builder", 1979),
    Setting("Observatory spares after the storm", "Hawkfell Observatory", "the mirror works", 2003),
    Setting("School kitchens and the shared depot", "Six Parishes Catering", "the head cooks", 2008),
    Setting("Fishing gear bought from the old fleet", "Porthenna Quay Trust", "the net loft", 1982),
    Setting("Letterpress type for the village presses", "Quoin and Sorts Exchange", "the village presses", 2011),
)

PEOPLE: Final = (
    "Abendroth", "Bellamy", "Corvey", "Dashwell", "Eskdale", "Farrant", "Gillow", "Hesketh", "Inchbald", "Juniper",
    "Kestle", "Loveday", "Mortlake", "Nankivell", "Oxenham", "Pascoe", "Quarmby", "Rosewarne", "Silkin", "Trevanion",
    "Uglow", "Venning", "Wadham", "Yelland", "Zeal", "Ashcombe", "Brill", "Challis", "Dunstan", "Everard",
)  # fmt: skip
