"""Own the kinds of paper an archive holds, and the phrases that belong to one kind only.

Pure data, all of it invented. A heading carries the reference and the date. Slots as in `phrases`, and: ref, date,
office, partner, to (whom it is addressed), by (who signs), a_sig, b_sig (names as signed).
"""

from typing import Final, NamedTuple


class Genre(NamedTuple):
    """One kind of paper: alternatives for its head (a block of lines), for its first line, for the line that
    leads in a fact, for its prose, and for its foot (a block of lines).
    """

    name: str
    heads: tuple[tuple[str, ...], ...]
    openers: tuple[str, ...]
    leads: tuple[str, ...]
    prose: tuple[str, ...]
    feet: tuple[tuple[str, ...], ...]


LETTER: Final = Genre(
    "letter",
    (
        ("{office}, letter {ref}, {date}", "Dear {to},"),
        ("Our reference {ref}, {date}, to {partner}", "Dear {to},"),
        ("Copy of a letter, reference {ref}, sent {date}", "To {to}, with thanks for the last one."),
        ("{ref}, {date}, by second post", "Dear {to}, dear colleagues,"),
    ),
    (
        "Thank you for your lines, which reached us on {day} with the corner missing.",
        "I am sorry to have kept you waiting; {b} had the folder at home.",
        "If this crosses with a letter of yours, please treat yours as the better informed.",
        "My handwriting having been criticised, this is typed by {c}.",
    ),
    (
        "You ask for things to be put plainly, so here they are in the order of our book.",
        "From our book I copy for you:",
        "You will want this for your own records:",
    ),
    (
        "The samples you enclosed have been shown to {c}, who liked the second.",
        "We have nothing to add on the matter of the return postage.",
        "I should be grateful if you would keep the envelope, as the stamps are for {b}'s nephew.",
        "It was good to see your people at the open day, and the cake was finished by noon.",
        "The account for the string will follow separately.",
        "Should you come by train, {b} can fetch you from the halt after {time}.",
        "We trust that the new office suits you and that the roof is on.",
    ),
    (
        ("Yours faithfully,", "{by}, for {office}"),
        ("With kind regards,", "{by}"),
        ("Yours sincerely, {by}, correspondence desk",),
        ("Signed for the correspondence desk by {by}",),
    ),
)

MINUTES: Final = Genre(
    "minutes",
    (
        ("Minutes {ref}, meeting held on {date}", "Present: {a}, {b}, {c}. Apologies: none."),
        ("{office}: minutes of the stores meeting, {date}, reference {ref}", "In the chair: {a}."),
        ("Reference {ref}. Notes of the short meeting of {date}", "Attended by {a} and {b}; {c} came late."),
    ),
    (
        "The minutes of the last meeting were read and agreed after one comma had been moved.",
        "{a} opened by asking for brevity and was thanked for it.",
        "{b} reported that the survey of door handles is complete.",
    ),
    (
        "The chair read the following into the record without discussion.",
        "The next entry was dictated slowly so that all could write it down.",
        "From the list on the table:",
    ),
    (
        "It was resolved to buy a second stapler.",
        "{c} wished it noted that the draught is not imagined.",
        "The question of the tea rota was put off for the third time.",
        "A vote on the colour of the shelves was tied and the shelves stay grey.",
        "{b} will write to {partner} and show the letter to {c} first.",
        "There was some talk of the outing; it is to be by boat.",
        "Under any other business, {a} returned a hat.",
    ),
    (
        ("The meeting closed at {time}; minutes taken by {by}.",),
        ("Next meeting: when {a} calls it.", "Taken down by {by}, read over by {c}"),
        ("There being nothing else, the lamps were put out. Minutes: {by}",),
    ),
)

STOCK_CARD: Final = Genre(
    "stock card",
    (
        ("STOCK CARD {ref}, opened {date}",),
        ("{office}, stores card {ref}, renewed on {date}", "Kept by {a}; deputy {b}."),
        ("Card {ref} (replaces a torn one), written out fair on {date}",),
        ("Bin card, reference {ref}, begun {date}", "Entries in ink only. Initials in the last column."),
    ),
    (
        "Card transferred from the wooden drawer to the steel one.",
        "The corner of this card was clipped to show that it has been indexed.",
        "Shelf mark rewritten by {b} because the old one had faded.",
    ),
    (
        "Entry made in ink:",
        "Taken over from the torn card:",
        "As per ledger:",
    ),
    (
        "Column four is not used and should stay empty.",
        "Entries above this point were checked against the ledger by {a}.",
        "Handle by the lower edge; the upper edge has been mended with tape.",
        "A duplicate card found in {room} was destroyed on {day}.",
        "The hook number is on the back in pencil.",
        "The stocktaker's tick was made with {c}'s pen, for want of another.",
        "Supplier's own number not copied, as it changes every season.",
        "Ruled lines are {n} to the inch; do not write between them.",
        "When this card is full, start a new one and tie the two together.",
    ),
    (
        ("Carried forward. {by}",),
        ("Card examined by {b} and put back in its place.",),
        ("End of entries on this side; the reverse is blank.",),
        ("Initialled: {by}",),
    ),
)

GATE_LOG: Final = Genre(
    "gate log",
    (
        ("Gate log {ref}, sheet for {date}", "On duty: {a}, relieved at noon by {b}."),
        ("{office}, gatehouse book, reference {ref}, {date}",),
        ("Log of the main gate, {date}, folio {ref}", "Barrier tested, lamp trimmed, dog fed."),
    ),
    (
        "06:50 Gate opened by {a}; dew on the chain.",
        "07:25 Two cyclists admitted, both known.",
        "08:10 Baker's van, in and out.",
    ),
    (
        "Copied into the book at the request of the desk:",
        "Taken down from the telephone:",
        "From the slip on the clipboard:",
    ),
    (
        "08:40 {c} arrived without a badge and was vouched for.",
        "10:05 Driver from {partner} given directions and a cup of tea.",
        "11:30 Barrier stuck for {n} minutes, freed with oil.",
        "12:20 {b} took over; keys counted and found complete.",
        "13:45 Postman, one parcel, signed for by {c}.",
        "14:35 Children fetched a ball from the grass.",
        "15:50 Window of the gatehouse cleaned on the inside only.",
        "16:55 Visitor for {c} sent on to {room}.",
    ),
    (
        ("18:00 Gate shut, lamp lit, book closed. {b_sig}",),
        ("17:40 Handed over to the night watch with all keys. {b_sig}",),
        ("Sheet complete. Counted and signed by {by}",),
    ),
)

MEMO: Final = Genre(
    "memo",
    (
        ("MEMORANDUM {ref}, {date}", "From {by} to {to}; copy to {c}"),
        ("Internal memo, reference {ref}, {date}", "To all desks, from {by}"),
        ("{office}, office memo {ref} of {date}", "For the attention of {to}, please read and pass on."),
    ),
    (
        "This memo puts on one page what was said in the corridor.",
        "Please do not answer by memo; a nod at lunch will do.",
        "I have asked {c} to keep the earlier memos together under one clip.",
    ),
    (
        "The points below are in no order of importance.",
        "For your cards:",
        "This much is certain:",
    ),
    (
        "{b} need take no action beyond changing the card.",
        "The blotter on my desk is not a place for urgent papers.",
        "If something here is unclear, ask before {time}, as I am out afterwards.",
        "We have been reminded again that the desk lamps belong to the desks.",
        "The typing pool would like shorter sentences and will get them.",
        "A copy goes to {partner} for information, without the last paragraph.",
        "I enclose the cutting from the works bulletin, which is amusing.",
        "This need not be discussed on {day}, when there is enough to discuss.",
    ),
    (
        ("{by}",),
        ("Please initial and return: {to}, {c}",),
        ("Destroy after filing the top copy. {by}",),
        ("{by}, stores office", "Copies: file, {c}"),
    ),
)

INSPECTION: Final = Genre(
    "inspection note",
    (
        ("Inspection note {ref}, {date}", "Inspector: {by}. Accompanied by {b}."),
        ("{office}: report of a routine visit, reference {ref}, {date}",),
        ("Reference {ref}, findings of the walk-round on {date}", "Written up by {by} the same evening."),
    ),
    (
        "The visit began at {time} in {room} and was announced beforehand.",
        "Books were shown without being asked for.",
        "Smoking notices are in place and are being obeyed, by the smell of it.",
    ),
    (
        "The following was read from the register and compared with the tag.",
        "The register has this:",
        "Seen and noted:",
    ),
    (
        "Fire buckets full, sand dry, one handle loose.",
        "{b} answered all questions and two that were not asked.",
        "Ladders are now chained, as recommended last time.",
        "I could not test the hoist because {c} was standing on it.",
        "The draught under the door should be seen to before winter.",
        "No one on duty could say who has the second key to {room}.",
        "The scales were tried with the brass weight and behaved.",
        "A further visit is not thought necessary this quarter.",
    ),
    (
        ("No objections raised. {by}, inspector",),
        ("Read over to {b}, who agreed with it.", "Signed: {by}"),
        ("One copy left on the premises, one filed. {by}",),
    ),
)

PHONE_NOTE: Final = Genre(
    "telephone note",
    (
        ("Telephone note {ref}, {date}, call taken by {by}",),
        ("Call from {partner}, {date}, reference {ref}", "Answered by {by}; {b} listened in."),
        ("Note of a telephone call, {ref}, {date}", "Caller: a clerk of {partner}. Written down by {by}."),
    ),
    (
        "The caller rang at {time} and asked to be put through to {c}, who was out.",
        "The line was poor, and the caller spelt out every name.",
        "The caller had our previous letter on the desk but not the glasses to read it.",
    ),
    (
        "I read the following back and it was confirmed word for word.",
        "In the caller's words:",
        "What I was given to write down:",
    ),
    (
        "Asked whether this could be put in writing, the caller said it just had been.",
        "There was a dog barking at the other end throughout.",
        "The caller sends regards to {c} and asks after the knee.",
        "We were cut off once and connected again after {n} minutes.",
        "The caller will not ring again unless something changes.",
        "I promised that {b} would look up the rest.",
        "The charge for the call is to be entered under general expenses.",
        "Some laughter about the name of the street, which need not be recorded.",
    ),
    (
        ("Nothing further. {by}",),
        ("Passed to {c} by hand. {by}",),
        ("Typed from shorthand, without corrections, by {by}",),
    ),
)

CIRCULAR: Final = Genre(
    "circular",
    (
        ("CIRCULAR {ref}, {date}", "To be read out at the start of each shift."),
        ("{office}, notice to all staff, reference {ref}, {date}",),
        ("Notice {ref}, posted {date} beside the time clock", "Please do not remove; copies from {by}."),
    ),
    (
        "Staff are asked to read to the end before asking.",
        "Foremen will please make sure that the evening shift sees this too.",
        "Remarks on this notice should be made to {a} and not written upon it.",
    ),
    (
        "The entries below were given to us by {b} and are repeated without change.",
        "Please note the entries that follow in your own books.",
        "For information:",
    ),
    (
        "Bicycles are not to be leaned against the notice board.",
        "Overalls may be handed in for washing on {day} before {time}.",
        "Those who cannot find their locker key should see {c}.",
        "The whistle at noon is a test and may be ignored by all but the hungry.",
        "The lending library opens for {n} hours a week, in {room}.",
        "Good work was done on the drains, and it has been noticed.",
        "The collection for {c} came to a handsome sum, and a clock has been bought.",
    ),
    (
        ("By order, {by}",),
        ("To be taken down after {n} weeks. {by}",),
        ("{by}, staff office", "Read out by the foreman, on all shifts"),
    ),
)

SHIFT_BOOK: Final = Genre(
    "shift book",
    (
        ("Shift book, page {ref}, night of {date}", "Written by {by} for {to}."),
        ("Handover sheet {ref}, {date}",),
        ("{office}, foreman's diary, {date}, entry {ref}", "Fair weather, full crew but one."),
    ),
    (
        "Quiet shift; the compressor coughed once and went on.",
        "{to}, please look at the fan belt before you start anything else.",
        "{c} rang at midnight to ask about the noise, which was us.",
    ),
    (
        "Copied from the office board, since the board gets wiped:",
        "On the board at the start of the shift:",
        "For the record:",
    ),
    (
        "Changed two bulbs and used the last of the long ones.",
        "The trainee swept without being told and should be told that it was seen.",
        "Left {item} on the bench, wiped but not oiled.",
        "Soup was good. The urn wants descaling.",
        "I put the oily rags in the lidded bin, where they belong.",
        "The second boiler was let down before midnight, as agreed.",
        "No accidents, one bruise, nothing for the book of accidents.",
        "Found the {day} newspaper in the gearbox cover and left it there.",
    ),
    (
        ("Handed over at six in good order. {by}",),
        ("Signed off, {by}. Seen by {to}",),
        ("Nothing else. Good morning, {to}. {by}",),
    ),
)

WAYBILL: Final = Genre(
    "carrier's sheet",
    (
        ("Carrier's sheet {ref}, made out {date}", "Driver: {a}. Mate: {b}."),
        ("Consignment note, reference {ref}, {date}, for {partner}",),
        ("{office}, transport desk, waybill {ref}, {date}", "Issued by {by} in three copies; this is the yellow one."),
    ),
    (
        "Driver to present this sheet unfolded.",
        "The tail-lift is stiff and needs two people.",
        "Straps and corner boards are ours and must come back.",
    ),
    (
        "The following particulars are for the receiver's clerk.",
        "Particulars:",
        "Read this out to the receiver:",
    ),
    (
        "Low bridge on the old road; take the road past the brewery.",
        "The number plate was read by {b} and not checked by anyone else.",
        "No loading on {day}, when the crane driver is at the dentist.",
        "Waiting time is charged after {n} quarters of an hour.",
        "{c} rode in the cab as far as the crossroads.",
        "The receiver's stamp goes in the box, not across it.",
        "The white copy stays with the desk, the pink one travels.",
        "Fuel slip attached with a pin; mind the pin.",
    ),
    (
        ("Sheet closed by {by}",),
        ("Received the yellow copy: {c}",),
        ("For {office}: {by}", "For the carrier: {a_sig}"),
    ),
)

GENRES: Final = (
    LETTER, MINUTES, STOCK_CARD, GATE_LOG, MEMO, INSPECTION, PHONE_NOTE, CIRCULAR, SHIFT_BOOK, WAYBILL,
)  # fmt: skip
