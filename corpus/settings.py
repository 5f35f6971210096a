"""Own what a dossier is about: title, office, reference letters, and the values that facts may take.

Pure data, all of it invented. Values hold no period, quotation mark, backslash or line break,
and at most 40 characters.
"""

from typing import Final, NamedTuple


class Setting(NamedTuple):
    """What all documents of one dossier have in common."""

    title: str
    office: str
    letters: str
    partner: str


FIRST_NUMBER: Final = 10
TEST_DOSSIERS: Final = 20
DOCUMENTS: Final = 12
PRINCIPAL: Final = "reader-demo"
FIELDS: Final = ("delivery", "status", "quantity", "site")
MONTHS: Final = (
    ("January", 31), ("February", 28), ("March", 31), ("April", 30), ("May", 31), ("June", 30),
    ("July", 31), ("August", 31), ("September", 30), ("October", 31), ("November", 30), ("December", 31),
)  # fmt: skip
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
NUMBER_WORDS: Final = ("two", "three", "four", "five", "six", "seven", "eight", "nine")

STATUSES: Final = (
    "awaiting inspection", "packed for dispatch", "in transit by rail", "held for a signature", "under repair",
    "ready for collection", "partly shipped", "returned by the customer", "cleared for export", "in quarantine",
    "sealed and weighed", "waiting for spare parts", "being relabelled", "reserved for training", "tested, no faults",
    "stored under cover", "on loan", "sampled and accepted", "rejected at first sorting", "due for calibration",
    "assembled, not yet painted", "offered for sale", "unpacked", "locked pending a claim", "drying after a leak",
    "insured for the journey",
)  # fmt: skip

SITES: Final = (
    "Hall 4", "North Quay", "Millbrook depot", "Annex East", "Lower Yard", "Harbour shed B", "Gantry bay 7",
    "Tannery Row", "Old Granary", "Signal House", "Weir Lane store", "Upper Barn", "Pump House 2", "Ferry Steps",
    "Orchard Gate", "Kiln Street", "Cooperage", "Vault C", "West Siding", "Chapel Hill store", "Brickfield depot",
    "Boathouse 3", "Rope Walk", "Saltmarsh annex", "Customs Pier", "Hangar 12", "Clay Pit road", "Mast Yard",
    "Foundry Court", "Dairy Wing", "Tollgate hut", "Lighthouse cellar", "Quarry platform", "Ice House",
)  # fmt: skip

MEASURES: Final = ("units", "units", "units", "units", "crates", "boxes", "pallets", "drums", "reels", "sets")

SETTINGS: Final = (
    Setting("Moving the repair stock out of the river sheds", "Ostrell Pump Works", "OPW", "Harl Bros carriers"),
    Setting("Lamps and lanterns for the coast stations", "Quenby Lamp Store", "QLS", "the coast station office"),
    Setting("Spare looms for the two weaving schools", "Thessaly Lane Looms", "TLL", "the weaving schools"),
    Setting("The bell foundry's unfinished orders", "Marrowgate Bell Foundry", "MBF", "the tower committee"),
    Setting("Measuring glasses after the flood", "Aldermoor Glassworks", "AGW", "the insurers' assessor"),
    Setting("Second-hand presses for the print rooms", "Inkwell Row Printers", "IRP", "the print room at Selby Cross"),
    Setting("Winter boots for the survey parties", "Cobbold and Fenn Outfitters", "CFO", "the survey camp"),
    Setting("Returns from the travelling exhibition", "Pellmere Museum Service", "PMS", "the exhibition hauliers"),
    Setting("Clock parts between three workshops", "Dunmallow Clockmakers", "DCM", "the turret clock workshop"),
    Setting("Seed stores and the long drought", "Ashby Vale Seed House", "AVS", "the growers' union"),
    Setting("The canal company's last inventory", "Wharram Canal Office", "WCO", "the lock-keepers' house"),
    Setting("Bench tools for the apprentices", "Tidewell Training Shops", "TTS", "the apprentices' board"),
    Setting("Tiles for the swimming baths", "Cinderford Tile Kilns", "CTK", "the baths committee"),
    Setting("Instruments for the school orchestras", "Larkrise Instrument Pool", "LIP", "the music adviser"),
    Setting("Rope, tar and canvas at the old slip", "Gannet Point Chandlery", "GPC", "the harbour board"),
    Setting("Moving the map room, part one", "Northolme Map Office", "NMO", "the moving firm"),
    Setting("Kitchen ranges for the mountain huts", "Hob and Flue Stoves", "HFS", "the hut wardens"),
    Setting("Beehives and the new orchard lease", "Combe Apiary Supplies", "CAS", "the orchard tenants"),
    Setting("Ticket machines of the branch lines", "Withy Junction Stores", "WJS", "the branch line manager"),
    Setting("Dyes and mordants, the disputed lots", "Madder Hill Dyeworks", "MHD", "the colour chemist"),
    Setting("Weather stations before the season", "Skerry Instrument Depot", "SID", "the field observers"),
    Setting("The puppet theatre's removal", "Lanternfold Theatre Stores", "LTS", "the removal crew"),
    Setting("Fire buckets, hoses and the new rules", "Emberley Safety Stores", "ESS", "the fire inspector"),
    Setting("Ferry spares on both banks", "Two Banks Ferry Workshop", "TBF", "the far bank workshop"),
    Setting("Microscopes for the evening classes", "Lowther Optical Bench", "LOB", "the evening institute"),
    Setting("Cheese presses and the dairy loan", "Hartsop Dairy Equipment", "HDE", "the dairy farmers"),
    Setting("Paper stock in the damp cellar", "Vellum Street Paper Store", "VSP", "the binders"),
    Setting("Pumps and gauges for the upland farms", "Greyrigg Hydraulic Stores", "GHS", "the upland farms' agent"),
    Setting("Uniforms for the summer stewards", "Pavilion Wardrobe Office", "PWO", "the head steward"),
    Setting("What the signal boxes left behind", "Crossways Signal Stores", "CSS", "the line clearance gang"),
)
