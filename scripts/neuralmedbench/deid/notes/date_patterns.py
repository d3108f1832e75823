"""Patterns of dates and ages in clinical English."""

from __future__ import annotations

import re

from neuralmedbench.deid.notes.redaction import COVER

MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
_MONTH = r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)\.?"
_DAY_NAME = r"(?:Mon(?:day)?|Tue(?:s(?:day)?)?|Wed(?:s|nesday)?|Thu(?:r(?:s(?:day)?)?)?|Fri(?:day)?|Sat(?:urday)?|Sun(?:day)?)"
_MONTH_CAPITALS = (
    "(?:" + "|".join(sorted({name.upper() for month in MONTHS for name in (month, month[:3])}, key=lambda name: (-len(name), name))) + ")"
)
_MONTH_SMALL = "(?:" + "|".join(month for month in MONTHS if month != "may") + ")"
_WEEKDAY = rf"(?:{_DAY_NAME}\.?,?\s+)?"
_ORDINAL = r"(?:st|nd|rd|th|\.)?"
_UNIT = r"(?! ?(?:mg|ml|mL|mm|cm|kg|x|years?|months?|weeks?|days?|hours?|min|%)\b)"
_YEAR = rf"(?P<year>\d{{4}}|['’]\d{{2}}|\d{{2}}(?!\d|[:./]\d|%){_UNIT})"

BORN = re.compile(
    r"\b(?P<word>(?:born|date of birth|dob|d\.o\.b\.|birth ?date|birthday)(?:\s+(?:on|is))?\s*[:.]?\s*)(?P<value>\d{1,4}[-./ ]\d{1,2}[-./ ]\d{1,4}"
    rf"|\d{{1,2}}{_ORDINAL}(?: of)?[ -]{_MONTH},?[ -]\d{{2,4}}|{_MONTH} \d{{1,2}}{_ORDINAL},? \d{{4}}|(?:in )?(?:{_MONTH} )?\d{{4}}|\d{{8}})\b",
    re.IGNORECASE,
)
COMPACT_DATE = re.compile(r"(?<![\w.-])(?P<a>(?:19|20)\d{2})(?P<b>0[1-9]|1[0-2])(?P<c>0[1-9]|[12]\d|3[01])(?![\w-]|\.\d)")
NUMERIC_DATE = re.compile(r"(?<![\d/.-])(?P<a>\d{1,4})(?P<mark>[-./])(?P<b>\d{1,2})(?P=mark)(?P<c>\d{4}|\d{2})(?![\d/-]|\.\d)")
SCORED = re.compile(r"\b(?:apgar|scores?|power|strength|reflexes|MRC)\W*$", re.IGNORECASE)
"""What stands before figures that are scores: Apgar 8/9/10."""
ROMAN_DATE = re.compile(r"\b(?P<day>\d{1,2})[-./ ](?P<roman>[IVX]{1,4})[-./ ](?P<year>\d{4})\b")
DAY_RANGE = re.compile(
    rf"\b(?P<value>\d{{1,2}}{_ORDINAL} ?(?:to|until|through|and|-|–|/) ?)(?=\d{{1,2}}{_ORDINAL}(?: of)? {_MONTH}\b)", re.IGNORECASE
)
MONTH_RANGE = re.compile(rf"\b(?P<value>{_MONTH} ?(?:-|–|/|to|and) ?)(?={_MONTH} \d{{4}}\b)", re.IGNORECASE)
"""The first of two months that share a year: `April-May 2031`."""
DAY_MONTH_YEAR = re.compile(
    rf"\b{_WEEKDAY}(?P<day>\d{{1,2}}){_ORDINAL}(?: of)?(?P<gap>[ -]?)(?P<month>{_MONTH})(?:,? |-|(?<=\.))?{_YEAR}(?!\w)", re.IGNORECASE
)
MONTH_DAY_YEAR = re.compile(rf"\b{_WEEKDAY}(?P<month>{_MONTH}) (?P<day>\d{{1,2}}){_ORDINAL},? (?P<year>\d{{4}})\b", re.IGNORECASE)
MONTH_YEAR = re.compile(rf"\b(?P<month>{_MONTH}),?[ -](?:of )?(?P<year>\d{{4}}\b|['’]\d{{2}}(?![\w%]))", re.IGNORECASE)
FIGURE_MONTH = re.compile(
    r"(?<![\w/.:-])(?:(?P<month>0?[1-9]|1[0-2])(?P<mark>[/-])(?P<year>(?:19|20)\d{2})|(?P<iso>(?:19|20)\d{2})[/-](?P<second>0[1-9]|1[0-2]))(?![\w/%-]|[.:]\d)"
)
"""A month in figures: `2031-03`, `03/2031`, `3/2031`."""
DILUTED = re.compile(r"\b(?:titres?|titers?|dilut\w+|ratio|scale)\W*(?:of |was |is )?$", re.IGNORECASE)
"""What stands before figures that are a dilution."""
MONTH_SPAN = re.compile(r"(?<![\w/.:-])(?:0?[1-9]|1[0-2])/\d{2} ?(?:-|–|to|until) ?(?:0[1-9]|1[0-2])/\d{2}(?![\w/%-]|[.:]\d)")
"""Two months with years of two digits, the second with its zero: `12/28 - 02/29`; blood pressure 120/80 is none."""
SEASON = re.compile(
    r"\b(?:(?:early|late|mid)[ -])?(?P<part>spring|summer|autumn|fall|winter|Q[1-4])(?: of)?[ /-]?(?P<year>(?:19|20)\d{2})\b", re.IGNORECASE
)
"""A part of a year: `spring of 2027`, `Q2 2031`."""
MIDDLE_MONTHS = {"spring": 4, "summer": 7, "autumn": 10, "fall": 10, "winter": 1, "q1": 2, "q2": 5, "q3": 8, "q4": 11}
DAY_ALONE = re.compile(r"\b(?:on|until|till|by|since) (?P<value>the \d{1,2}(?:st|nd|rd|th))(?=[ ]*(?:[.,;)\n]|$))", re.IGNORECASE)
_WHEN = r"(?:d/c|adm|on|since|until|till|from|by|due|dated|dd|changed|removed|inserted|planned|admitted|discharged|seen|visit|exam|lkw|onset|after|before|CT|MRI|LP|TCD|US|x-?ray|labs?|spell|fall|stroke|TIA|bleed|seizure|surgery|operation|op|appt|appointment|clinic|review|reported|sampled|collected|received|printed|updated|verified|started|stopped)"
DAY_MONTH = re.compile(
    rf"\b{_WEEKDAY}(?:\d{{1,2}}{_ORDINAL}(?: of)?[ -]{_MONTH}|(?-i:{_MONTH}|{_MONTH_CAPITALS}) \d{{1,2}}{_ORDINAL}(?!\d){_UNIT}|{_MONTH} (?:the )?\d{{1,2}}(?:st|nd|rd|th)|(?-i:{_MONTH_SMALL}) \d{{1,2}}(?!\d){_UNIT})(?![\w/])"
    rf"|(?:(?<=\()|\b{_WHEN}:? |\b(?=\d\d\.\d\d\.[:,)]))(?P<also>(?:0[1-9]|[12]\d|3[01])\.(?:0[1-9]|1[0-2])\.)(?!\d)"
    rf"|\b{_WHEN}:? (?P<value>(?:0?[1-9]|[12]\d|3[01])[/.](?:0?[1-9]|[12]\d|3[01]))\b(?![/.%]\d|/)"
    rf"|\b{_DAY_NAME}\.?,? (?:(?:0?[1-9]|[12]\d|3[01])[/.](?:0?[1-9]|[12]\d|3[01]))\b(?![/.%]\d)",
    re.IGNORECASE,
)
SPELLED_DAY = re.compile(
    rf"\b(?:the )?(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth"
    rf"|seventeenth|eighteenth|nineteenth|twentieth|thirtieth) of {_MONTH}(?!\w)|\b{_MONTH} (?:the )?(?:(?:twenty|thirty)[- ])?(?:first|second|third|fourth|fifth|sixth|seventh"
    r"|eighth|ninth|tenth|eleventh|twelfth|thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|twentieth|thirtieth)\b",
    re.IGNORECASE,
)
NEXT_DAY = re.compile(rf"(?<={COVER})(?P<value>,? ?(?:and|&|to|until|-|–) ?\d{{1,2}}(?:st|nd|rd|th))(?!\w)")
"""Another day of a month that was named before: `May 12th and 13th`."""
MONTH_ALONE = re.compile(
    rf"\b(?:in|since|until|till|last|next|this|early|late|mid|by|from|during|of|and|or|end of)[ -](?P<value>{_MONTH})(?![\w]|[ ](?:be|have|not)\b)"
    rf"|\b(?i:in|since|until|till|last|next|early|late|mid|during|end of)[ -](?P<also>(?i:(?!may|mar\b|dec\b){_MONTH}|may|march))(?![\w]|[ ](?i:be|have|not)\b)"
)
HOLIDAY = re.compile(
    r"\b(?:Christmas(?: Eve| Day)?|Xmas|Boxing Day|New Year['’]?s?(?: Eve| Day)?|Easter(?: Sunday| Monday)?|Good Friday|Whit(?: Sunday| Monday)|Thanksgiving|Hallowe['’]?en"
    r"|(?:St\.? )?Valentine['’]?s Day|St\.? Patrick['’]?s Day|Labou?r Day|Memorial Day|Independence Day|4th of July|Mother['’]?s Day|Father['’]?s Day|Ramadan|Eid|Diwali|Hanukkah|Yom Kippur|Passover)\b(?! (?:tree|disease))",
    re.IGNORECASE,
)
AGE = re.compile(
    r"\b(?P<age>\d{2,3})(?P<rest>[- ]?(?:years?|yrs?|y)\b(?:[- /](?:old|o)\b)?|[- ]?y\.?o\.?\b| ?y/o\b| ?(?-i:[MF])\b(?![\w/])|[ -](?:male|female|man|woman)\b)"
    r"|\b(?P<word>(?:aged?(?: of)?|turn(?:ed|ing|s)|age is):?\s+)(?P<late>\d{2,3})\b",
    re.IGNORECASE,
)
SPELLED_AGE = re.compile(
    r"\bninety(?:[- ](?:one|two|three|four|five|six|seven|eight|nine))?(?=[- ]years?)|\b(?:one )?hundred(?:(?: and)? \w+)?(?=[- ]years? old)|\bcentenarian\b|\bnonagenarian\b",
    re.IGNORECASE,
)
