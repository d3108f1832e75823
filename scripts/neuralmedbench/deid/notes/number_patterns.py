"""Patterns of numbers and addresses of machines that identify: telephones, records, accounts, devices, vehicles, files."""

from __future__ import annotations

import re

from neuralmedbench.deid.notes.redaction import COVER_ID

EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")
URL = re.compile(
    r"(?:https?://|ftp://|www\.)[^\s<>\"')]*[^\s<>\"').,;:]|\b(?:[a-z\d-]{1,63}\.){1,6}(?:com|org|net|edu|gov|info|nl|de|fr|es|it|ie|ch|at|be|se|no|dk|ca|au|in|jp|(?:co|ac|nhs|org)\.uk)\b(?:/[^\s<>\"')]*)?",
    re.IGNORECASE,
)
FILE = re.compile(
    r"(?<![\w/.])[\w-]{1,80}\.(?:jpe?g|png|tiff?|bmp|gif|heic|nef|cr2|mp4|mov|avi|mkv|wav|mp3|m4a|pdf|docx?|xlsx?|dcm|nii(?:\.gz)?|zip|edf|bdf|eeg|csv|txt|xml|json|rtf|html?)\b",
    re.IGNORECASE,
)
UID = re.compile(r"(?<![\w.])\d{1,40}(?:\.\d{1,40}){4,30}(?![\w])")
IP_ADDRESS = re.compile(r"(?<![\d.])(?:\d{1,3}\.){3}\d{1,3}(?!\d|\.\d)|(?<![\w:])(?:[\da-fA-F]{1,4}:){7}[\da-fA-F]{1,4}(?![\w:])")
MAC_ADDRESS = re.compile(r"(?<![\w:-])(?:[\da-fA-F]{2}[:-]){5}[\da-fA-F]{2}(?![\w:-])")
SSN = re.compile(r"(?<![\d-])\d{3}-\d{2}-\d{4}(?![\d-])|(?<!\d)\d{3}\.\d{3}\.\d{3}-\d{2}(?!\d)")
PHONE = re.compile(
    r"(?<![\w+])(?:(?:\+|00)\d[\d ().-]{6,}\d|(?:1[ .-]?)?\(?\d{3}\)?[ .-]{1,2}\d{3}[ .-]\d{4}|0\d{1,4}[ -]\d{3,4}[ -]?\d{3,4})(?!\w)"
    r"|\b(?:tel(?:ephone)?|phone|(?-i:Ph|PH)|fax|mobile|mob|cell|whatsapp|pager|bleep|beeper|ext(?:ension)?|call|dial|number is)\b[ .:()#]*(?:on|no\.?|number|at)?[ .:()#x]*(?P<value>\+?\d[\d ().-]{2,}\d)"
    r"|(?<!\w)(?:x|#)(?P<also>\d{4,6})\b(?!\s*(?:mg|ml|/))",
    re.IGNORECASE,
)
LOCAL_PHONE = re.compile(
    r"(?<![\w./-])(?P<exchange>[2-9]\d{2})[-. ](?P<line>\d{4})(?![\w/-]|\.\d|[ ]?(?:mg|ml|mL|ms|mm|mcg|ug|kcal|U|IU|x)\b)"
)
_KIND = (
    r"hospital|hosp|patient|pat\.?|pathology|lab|medical record|medical card|health card|record|chart|case|NHS|insurance|ins|policy|plan|member|group|subscriber|beneficiary|medicare|medicaid"
    r"|account|acct|bank|iban|accession|order|licen[cs]e|licence|driver|driving licen[cs]e|certificate|passport|badge|employee|student|serial|lot|batch|model serial"
    r"|device|implant|pump|pacemaker|scanner|sample|specimen|barcode|wristband|band|family|trial|study|protocol|registration|plate|number plate|license plate"
    r"|vehicle|tail|flight|run|tracking|booking|social security|tax|national|identity|identification|CPF|BSN|DEA|GMC|NPI|NMC|IMEI|SN|S/N|medical|unit|file"
)
_NUMBERED = r"(?:[ ](?:id|no|nr|number|num|num\.|#)\b\.?)"
_VALUE = r"[A-Z]{0,6}[-*/ ]?\d[\dA-Z*-]{0,40}(?:[-/. ](?=[A-Z]{0,2}\d)[\dA-Z]{1,40}){0,8}(?:[ ][A-Z]{2}\b)?"
RECORD_NUMBER = re.compile(
    rf"\b(?:MRN|MR#|(?:(?:{_KIND})(?:{_NUMBERED}|[ ]?#))|(?:{_KIND})(?=[ ]?:)|accession|acc|ID(?![A-Za-z])|SSN|BSN|CPF|DEA|GMC|NPI|NMC|IMEI|IBAN|S/N|SN|serial|lot|passport|badge|certificate|medicare|medicaid"
    rf"|policy|member|account|barcode|(?:driving )?licen[cs]e|driver licen[cs]e)\s*(?:id\b|no\b\.?|nr\b\.?|number\b|ending\b|#|is\b)?[ ]*[.:#=]{{0,2}}[ \t]*(?P<value>(?=(?:[A-Z*/. -]{{0,20}}\d){{3}})(?:{_VALUE}))(?![\w])",
    re.IGNORECASE,
)
NUMBERED = re.compile(r"\b(?:no\.|number|nr\.?|num\.)[ :]{1,2}(?P<value>(?=(?:[A-Z/.-]{0,20}\d){5})[A-Z\d][A-Z\d/.-]{0,40}[A-Z\d])(?![\w])")
SPOKEN = re.compile(
    r"\b(?:(?:zero|oh|one|two|three|four|five|six|seven|eight|nine|double|triple)[ ,-]+){4,30}(?:zero|oh|one|two|three|four|five|six|seven|eight|nine)\b",
    re.IGNORECASE,
)
"""A number that was dictated digit by digit."""
DONATION = re.compile(r"\b[A-Z]\d{4} ?\d{2} ?\d{6}(?: ?[A-Z\d]{1,2})?\b")
"""Number of a unit of blood (ISBT 128)."""
IBAN = re.compile(r"\b[A-Z]{2}\d{2}(?: ?[A-Z\d]{4}){3,7}(?: ?[A-Z\d]{1,4})?\b")
INSURANCE = re.compile(
    r"\b(?:insurance|ins|insurer|insured(?: with| by)?|policy|plan|health card|medical card|payer)\b\.?(?: number| no\.?| id)?[ :]{1,2}"
    r"(?P<value>(?:[A-Z][\w&-]*[ ]){0,3}(?:[A-Z]{0,6}-?\d[\dA-Z-]{4,}|\d{3,}(?= \d{2}))(?:[ -][\dA-Z]*\d[\dA-Z]*)*(?:[ ][A-Z]{2})?|[A-Z]{2,}-\d{3,}(?:-[A-Z\d]+)*)\b",
    re.IGNORECASE,
)
GROUPED_NUMBER = re.compile(r"(?<![\w.,/-])\d{2,5}(?:[ -]\d{2,6}){1,4}(?![\w/-]|[.,]\d)")
"""Groups of digits that are one number when they hold enough of them."""
LETTER_AND_GROUPS = re.compile(r"(?<![\w.-])[A-Z]{1,2} \d{3} \d{3}(?![\w/%-]|[.,]\d)")
CODE = re.compile(r"(?<![\w.-])(?=[A-Z\d/-]{0,40}[A-Z])(?=(?:[A-Z/-]{0,20}\d){4})[A-Z\d]{1,40}(?:[-/][A-Z\d]{1,40}){0,8}(?![\w-])")
"""Capital letters and at least four digits in one word; counts with five digits, or four after a hyphen."""
LONG_NUMBER = re.compile(r"(?<![\w.,/])\d{6,}(?![\w/]|[.,]\d)|(?<!\w)[A-Z]{1,4}-?\d{5,}(?!\w)")
MEASURED = re.compile(r"\s*(?:cells?|copies|IU|U|mg|ug|mcg|ng|pg|[fpnmuµ]mol|ml|mL|/|per\b|x\b|%|kcal|ms\b|mm\b|Hz)")
LABORATORY = re.compile(
    r"(?:platelets?|plt|wbc|rbc|leu[ck]ocytes|ck|ferritin|bnp|pro-?bnp|copies|titre|titer|viral load|count)[ :=<>]*(?:of )?$", re.IGNORECASE
)
"""What stands before or behind a long number that is a laboratory value."""
VEHICLE = re.compile(
    r"\b(?:plates?|registration|reg|licen[cs]e plate|number plate|car|van|tail(?: number)?|sticker|helicopter)\b\.?(?: tail| no\.?| number)?[ :]{1,2}(?P<value>(?=[A-Z -]*\d)[A-Z\d]{1,4}(?:(?:[ -][A-Z\d]{1,4}){1,2}|[A-Z\d]{1,4}))\b"
    r"|(?<!\w)(?P<also>[A-Z]{2}\d{2} [A-Z]{3}|\d[A-Z]{3}\d{3})(?!\w)"
)
BIOMETRIC = re.compile(
    r"\b(?:finger ?prints?|voice ?prints?|palm prints?|iris (?:scan|code)|retinal? (?:scan|print)|face ?id|facial template|biometric\w*)\b[^:;.\n\d]{0,40}?[: ](?P<value>[A-Z]{0,4}[- ]?\d[\dA-Z-]+(?:-[A-Z])?)",
    re.IGNORECASE,
)
STATION = re.compile(
    r"\b(?:station|workstation|work station|host|console|scanner|terminal)(?: name)?[ :]+(?P<value>(?=[A-Z-]*\d)[A-Z][A-Z\d-]{3,})\b"
)
BESIDE_NUMBER = re.compile(
    rf"(?<={COVER_ID})(?P<value>[-/.]?[A-Z\d]{0, 20}\d[A-Z\d-]{0, 20})(?!\w)|(?<![\w.])(?P<also>[A-Z\d-]{0, 20}\d[A-Z\d]{0, 20}[-/.]?)(?={COVER_ID})"
)
"""What is left of a longer number around a part that was found."""
LOGIN = re.compile(
    r"\b(?:log-?in|user ?name|user|account name|handle|twitter|instagram|skype)[ :]+(?P<value>@?[\w.:-]{0,40}(?:\d|_|\.|:)[\w.:-]{0,40}\w)|(?<![\w.])@\w{3,}",
    re.IGNORECASE,
)
