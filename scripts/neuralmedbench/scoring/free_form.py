"""Find the diagnoses of an answer that is not in the requested form: `Diagnosis: X`, `The most likely diagnosis is X.`, a list, JSON.

The first list that is introduced as one of diagnoses is read, then what the other text calls the diagnosis.
Only what commits itself is read: mentions are not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import dropwhile, takewhile
from typing import Any

from neuralmedbench.records.json_objects import objects_in
from neuralmedbench.records.vocabulary import normal_form
from neuralmedbench.scoring.lists import NOUNS, OPENER, PARAGRAPH_END, introduces, is_heading, list_from, mark_of
from neuralmedbench.scoring.sections import DECORATION, INLINE_NUMBER, KNOWN, clean
from neuralmedbench.scoring.structured_answer import read_json, valid_text

MAX_CHARACTERS = 40_000
MAX_DEPTH = 3
MAX_WORDS, MAX_LIST_WORDS, MAX_BARE_WORDS, MAX_BARE_LINES, MAX_FREE_WORDS, MAX_SHORT_WORDS, MAX_ANSWER_WORDS = 14, 10, 8, 10, 60, 200, 1300
"""Longest name behind a label, in a list, and in an answer of nothing but names; most of these; longest free answer without a label;
longest answer of which any sentence may commit itself weakly: of a longer one only the last paragraph does; longest one whose last
statement counts wherever it stands: of a longer one, a discussion, it does only at the end, if several name different things."""
END = 0.8
"""Share of a discussion behind which it ends."""
OWN_LINE = re.compile(r"\\n(?![a-z])|(?<=:) +(?=[+#(]?1[.)] )")
"""Where a line ends that was not ended: a written `\\n`, and the colon before a list in the same line."""

ESCAPED = re.compile(r"\\(?=[-+#.*_])")
"""The stroke before a sign that would be a mark of markdown."""

# an adjective of certainty or rank, repeated at most four times: `the single most likely diagnosis`
CERTAIN = (
    r"(?:final|most (?:likely|probable|plausible|compelling)|likeliest|likely|probable|primary|principal|leading|main|working|definitive|definite"
    r"|presumptive|provisional|suspected|top|best|overall|correct|single|clinical|radiological|imaging|unifying|diagnostic|potential)"
)
DIAGNOSIS = r"(?:diagnosis(?: *#?1)?|diagnoses|dx|answer)"
CALLED = (
    rf"(?:(?:the|my|our) +(?:{CERTAIN}[ ,]{{1,3}}){{0,4}}(?:diagnosis(?: *#?1)?|dx|answer)"
    rf"|(?:(?:the|my|our) +)?(?:{CERTAIN}[ ,]{{1,3}}){{1,4}}"
    r"(?:(?:(?:differential|initial|preliminary) +)?diagnosis|dx|answer|consideration|differential|possibility|cause|etiology|candidate|explanation|suspicion|hypothesis))"
)
IS = r"(?:is(?: likely(?: to be)?)?|was|would be|remains|appears to be|seems to be|must be|should be)"
LABEL = re.compile(
    rf"(?:(?:the|my|our|first) +)?(?:{CERTAIN}[ ,/-]{{1,3}}){{0,4}}(?:{DIAGNOSIS}|possible +diagnosis|(?P<impression>impression))(?: *\([^)\n]{{0,40}}\))?"
    rf" *[*_`]{{0,3}} *(?:(?:[:：=]| [–—-] )[ *_`]*(?P<rest>[^\n]*)|$)",
    re.IGNORECASE,
)
"""A line that is, or begins with, the label of a diagnosis; `Differential diagnosis` is none."""
AHEAD = re.compile(
    rf"\b(?:{CALLED}(?:,? +(?:in|for|here|based|given|considering|to)\b(?:(?!\b(?:but|as|must|remains?|because)\b)[^.:;\n]){{0,120}}?)??,? +{IS}\b"
    rf"|(?:following|(?:I|we)(?: would| will| can)? (?:make|propose|reach) (?:an?|the)) +(?:{CERTAIN} +){{0,3}}diagnosis *(?:of\b|:|of *:))[ :*_`]*(?=(?P<rest>[^\n]{{0,400}}))",
    re.IGNORECASE,
)
"""`The most likely diagnosis is X.`"""
BEHIND = re.compile(
    rf"\b(?:is|remains|would be|(?:appears|seems) to be|(?:emerges|ranks|stands out) as)[ *_]{{1,4}}(?:by far +)?"
    rf"(?:(?:the|my) +(?={CERTAIN}){CALLED}|(?:most |strongly )?favou?red\b|(?:the )?most (?:likely|probable)(?= *[.,;(\n]|\Z))",
    re.IGNORECASE,
)
"""`X is the most likely diagnosis.`"""
FITS = (
    r"(?:(?:consistent|compatible|in keeping|in line) with|(?:suggestive|characteristic|diagnostic|indicative|typical) of"
    r"|(?:typical|pathognomonic|concerning|suspicious|classic) for)"
)
REST = r" +(?=(?P<rest>[^\n]{1,400}))"
WEAKER = tuple(
    re.compile(rf"\b(?:{words}){REST}", re.IGNORECASE)
    for words in (
        (
            r"I (?:would |strongly )?suspect|(?:I would|I will|I) diagnose(?: (?:the|this) patient with| (?:him|her|it) (?:with|as))?"
            r"|(?:consistent|compatible) with a diagnosis of|(?:suggests?|suggesting|supports?|indicates?|favou?rs?) (?:a|the) diagnosis of"
            r"|(?:the|this) patient (?:is )?(?:most likely|very likely|likely|probably) (?:has|had|suffer(?:s|ing) from|suffered)"
            r"|(?:this|it) is (?:most likely|very likely|likely|probably)"
        ),
        (
            rf"(?:most|highly|strongly|very|best) +{FITS}|most likely (?:due to|caused by|representing|represents?)|(?:I|we|findings|features|appearances|this) (?:would )?(?:most |strongly )?favou?rs?"
            r"|(?:classic(?:al)?|pathognomonic|diagnostic)(?: (?:case|example|appearance|presentation|picture))? (?:of|for)"
        ),
        (
            rf"(?:findings|features|appearances?|picture|presentation|constellation|pattern|symptoms)\b[^.:;\n]{{0,60}}? (?:{FITS}|suggests?|points? to)"
            rf"|(?:this|these)\b[^.:;\n]{{0,60}}? {FITS}"
        ),
    )
)
"""Sentences that commit themselves less clearly, those of radiologists (`most in keeping with X`) among them. The first kind that an answer
has counts, if nothing clearer is there, and if all of this kind name the same."""

NOT_THIS = re.compile(
    r"(?:\b(?:if|unless|until|whether|what|where|which|why|how|exclude|excludes|against|(?:treatment|management|therapy|tests?|step) (?:for|of|in)|not|never|neither|doubt|unlikely)\b[^.;\n]*|n't\b[^.;\n]*"
    r"|\b(?:less|least|second|third|next|other|another|alternative|alternate|former|initial|previous|prior|earlier|wrong|incorrect|differential)"
    r"[ ,*_]{1,4}(?:(?:the|a|an|most) +)?)$",
    re.IGNORECASE,
)
"""Words before a statement, in its sentence, after which it is a condition, a question, another rank or a denial."""
PREDICATE = re.compile(r"\b(?:is|was|be|being|remains|of) $", re.IGNORECASE)
"""Words before a statement that make it one about what comes before: `X is the most likely diagnosis given the age, and surgery is urgent`."""
BELIEF = re.compile(
    r"^.*\b(?:believe|think|say|suspect|conclude|feel|confident|confidence|certain|suggests?|indicates?|means?)(?: +that)? +", re.IGNORECASE
)
CLAUSE = re.compile(r", (?:(?:and |but )?(?:while|whereas|although|though)|but) ", re.IGNORECASE)
BOLD = re.compile(r"\*\*|__")
OF_FINDINGS = re.compile(rf"^(?:no\b.*|[^.\n]*?\b(?:{FITS}|suggesting|representing|favou?red to represent) +)", re.IGNORECASE)
"""Findings before the diagnosis, or their absence, in the line of an impression."""
FIRST_SENTENCE = re.compile(
    r"\s*+((?!The|This|It|There)\w[^.\n]{2,100})(?:\.|\n)\s*+(?=(?:This|These) (?:\w+ )?(?:is|are|conditions?|disease|disorder|syndrome|can)\b|However\b|Treatment\b)"
)
"""A name as the first sentence, and words about it: `Angioedema. This condition ...`"""
LAST_BUT_ONE = re.compile(r"[;,] *(?:and|or)$")
OF_A_SECTION = re.compile(
    r"^(?:overview|introduction|background|summary|synthesis|conclusions?|discussion|assessment|approach|key)\b"
    r"|\b(?:causes|a?etiologies|considerations|process(?:es)?|lesion|possibilities|categories|diagnos[ie]s)$",
    re.IGNORECASE,
)
"""Headings and groups: no diagnosis, but parts of a discussion."""
OF_A_GROUP = re.compile(
    r"(?:lesions|malformations|neoplasms|tumou?rs|disorders|diseases|infections|conditions|pathologies|reactions)$", re.IGNORECASE
)
RANK = re.compile(
    r"^[*_ ]*(?:(?:(?:most|very|highly|also|less) )?(?:likely|probable|possible|consider)|(?:disease|condition|disorder)(?: name)?)[*_ ]{0,3}:[*_ ]{0,3}",
    re.IGNORECASE,
)
OF_THE_CASE = re.compile(
    r"(?:patient|reference|candidate|clinical|history|findings|symptoms|imaging|other|various|serious|complex|underlying|range|variety)\b",
    re.IGNORECASE,
)
"""What findings may fit, other than a diagnosis: the patient's history."""
NO_NAME = re.compile(
    r"(?:not|unlikely|no longer|between|clear|neither|none of|to|that|what|which|when|if|how|listed|based|as follows|the following|given|made|shown|one|the one"
    r"|patient|diagnosis|clinical (?:presentation|picture|findings|features)|constellation|combination|description|presentation|findings|symptoms|features|picture|prognosis|treatment|presence|absence|overlooked|all (?:available|of|the)|why"
    r"|already|further|highly|strongly|(?:critical|crucial|essential|important)(?= (?:to|for|in|that|and)\b|[,.;]|$)|uncertain|negative|presumptive|provisional|tentative|directed|excluded|articulated"
    r"|examined|discussed|reviewed|(?:re)?considered|used|needed|called|known|supported|confirmed|established|it|he|she|they|this|there|these|those|also|still|often|usually)\b",
    re.IGNORECASE,
)
"""Beginnings of a rest that names nothing."""
OPENING = re.compile(
    r"(?:(?:therefore|thus|hence|so|overall|of course|in (?:conclusion|summary)|(?:based on|given) [^,]{1,200}),?|while|although|though|since|because|it is (?:most )?likely|(?:that (?:the|this)|the|this) patient (?:most likely |likely |probably )?(?:has|is suffering from|suffers from|had)"
    r"|(?:this|it) is|that of|(?:most |very )?(?:likely|probably)|(?:an? )?(?:(?:possible|potential) )?(?:case|diagnosis|possibility) of|(?:most )?consistent with|an?|the) +",
    re.IGNORECASE,
)
ENDS = re.compile(
    r"(?<!\bvs)(?<!\bSt)[.!?](?!(?<=\b[A-Z]\.) [a-z])(?=\s|$|[*_\"')])|,? (?:because|given|based on|since|(?<!such )as (?:evidenced|it|the|this|there|suggested|shown|indicated|supported)|which|that|who"
    r"|characteri[sz]ed|considering|followed by|although|though|but|however|rather than|supported by|is|are|was|were|has|have|would|could|should"
    r"|may|might|can)\b|, (?:an?|the|caused|with|due|most|likely|as|and the|not|so|confirmed|especially|particularly|such as|including)\b"
    r"| as (?:an?|the)\b| (?:this|it|these)(?= (?:is|are)\b)| [-–—] (?!or\b|vs)|—| ?(?:[|｜]|→)|: |:$"
    r"|; (?=[^;.]*\b(?:is|are|was|were|has|less|unlikely)\b)",
    re.IGNORECASE,
)
"""Where a name ends and an explanation begins. A semicolon, `or` and `and` are no ends: who names several at once has named none."""
CIRCUMSTANCE = re.compile(
    r",? (?:due to|leading to|secondary to|caused by|provoked by|complicated by|involving|following|in the (?:setting|context) of|(?<=\) )with) ",
    re.IGNORECASE,
)
"""Where a long name ends and its cause or its extent begins."""
UNCLOSED = re.compile(r"\s*\([^()]*$|^([^()]*)\).*$")
BRACKETED = re.compile(r"^\[[^\[\]]*\]|<[^<>]*(?:diagnosis|paragraph|for it|against it)")
"""Text that was removed (`[NAME]`), and copied words of the form."""
NAMES_NOTHING = re.compile(
    rf"(?:(?:{CERTAIN}|{DIAGNOSIS}|one|the|an?|several|possible|potential|differential|and|or|of|conditions?|diseases?|disorders?|process|patient|serious|complex|underlying|multi\w+|systemic|medical)[ ,/-]*)+",
    re.IGNORECASE,
)
"""Words of a statement that goes in a circle: `The most likely diagnosis is the most likely one.`"""
NUMBER_BEHIND = re.compile(
    r" ?\((?:(?:confidence|probability|likelihood)?[: ~]{0,3}\d{1,3}(?: ?[-–] ?\d{1,3})? ?%|\+\d|most likely)\)", re.IGNORECASE
)
"""A probability, or a mark of the prompt, behind a name: `(60 %)`, `(+1)`."""
VERB = re.compile(
    r"\b(?:is|are|was|were|has|have|had|shows?|showed|suggests?|should|would|could|may(?!-)|might|can|must|will|do|does|did|think|believe"
    r"|recommend|you|we|please|sorry|yes)\b",
    re.IGNORECASE,
)
BRACKETS = re.compile(r"\([^()]*\)")
NO_BARE_NAME = re.compile(
    r"\b(?:at|all|this|that|these|those|here|there|my|your|answers?|questions?|response|form|text|words?|paragraph|sentence|continue|provide|see"
    r"|following|above|below|next|if|then|ok|okay|thanks?|hello|hi|case|notes?|pictures?|images?|scan|findings?|patient)\b",
    re.IGNORECASE,
)
"""Words of talk about the task: an answer of a few words with one of them is no name."""
EVIDENCE = re.compile(
    rf"(?:(?:the|these|this patient|this|patient|given|based|considering|all)\b[^.]*?)\b(?:suggests?|points? to|indicates?|raises? (?:suspicion|concern) (?:for|of)|{FITS}) "
    r"+(?P<rest>.*)",
    re.IGNORECASE,
)
"""A sentence behind a label that names the evidence first."""
GAP = "#"
"""An empty heading where a list was: what comes behind it is not what a label above it names."""
HEAD = re.compile(r"[,:;|]| [-–—] ")
"""What ends the first words of an entry of a list: with a verb among these it is a sentence, not a name."""
ANSWER_HEADING = re.compile(
    r"(?:#{1,6}[ \t]*[*_]{0,3}|[*_]{2,3})[ \t]*(?:(?:my|the|final|short)[ \t]+){0,2}answer[ \t]*:?[ \t]*[*_]{0,3}[ \t]*#*", re.IGNORECASE
)
"""A line that is a heading, or in bold, and says `Answer` alone."""
DEEP = 4
"""Indent from which a label belongs to an entry of a list."""
TABLE_ROW = re.compile(r"\s*\|.*\|.*\|\s*")
LETTER = re.compile(r"[^\W\d_]")

FIRST_KEYS = (
    "final_diagnosis", "most_likely_diagnosis", "primary_diagnosis", "leading_diagnosis", "principal_diagnosis", "main_diagnosis",
    "predicted_diagnosis", "top_diagnosis", "working_diagnosis", "diagnosis", "dx", "final_answer", "answer", "prediction",
)  # fmt: skip
LIST_KEYS = (
    "differential", "differential_diagnosis", "differential_diagnoses", "ranked_differential", "ranked_diagnoses", "top_diagnoses",
    "diagnoses", "possible_diagnoses", "candidates",
)  # fmt: skip
RANK_KEY = re.compile(r"(?:rank|diagnosis|number)?[ _]?#?\d{1,2}|first|second|third|fourth|fifth", re.IGNORECASE)
NAME_KEYS = ("name", "diagnosis", "condition", "disease", "dx")


def stated_diagnoses(text: str, *, bare: bool) -> tuple[str, ...]:
    """Return the diagnoses that an answer in another form names, by rank; empty if it names none clearly.

    Of several statements the last one counts, as with choices. `bare` also reads an answer that is a name or a list and nothing else, which
    is only right where a diagnosis is what was asked for.
    """
    text = _lines_apart(text)
    if named := _of_objects(text):
        return named
    listed, rest = _listed(text, bare=bare)
    leading = _stated(rest) or ("" if listed else _suggested(rest))
    if not leading and not listed and bare:
        listed = _only_names(text)
    others = (name for name in listed if normal_form(name) != normal_form(leading))
    return tuple(dict.fromkeys(name for name in (leading, *others) if name))[:5]


def leading_statement(text: str) -> str:
    """Return the diagnosis that a text calls the most likely one, in a label or a sentence; empty if it does so nowhere."""
    return _stated(_lines_apart(text))


def _lines_apart(text: str) -> str:
    lines = OWN_LINE.sub("\n", ESCAPED.sub("", text[:MAX_CHARACTERS].replace("\t", " "))).split("\n")
    return "\n".join(_without_tables(lines))


def _without_tables(lines: list[str]) -> Iterator[str]:
    """Yield lines with the rows of a table of diagnoses as a numbered list, without its other columns; other tables stay."""
    column, rank = None, 0
    for line in lines:
        if not TABLE_ROW.fullmatch(line):
            column, rank = None, 0
            yield line
            continue
        cells = line.strip().strip("|").split("|")
        if not rank:
            nouns = [NOUNS.search(cell) for cell in cells]
            column, rank = next((place for place, noun in enumerate(nouns) if noun and noun["diagnoses"]), None), 1
        elif column is not None and LETTER.search(name := cells[min(column, len(cells) - 1)]):
            yield f"{rank}. {name.strip()}"
            rank += 1
        if column is None:
            yield line


def free_answer(text: str) -> str:
    """Return a free answer without its label: `The answer is X.`, JSON, the paragraph below a heading, or a text that is short enough."""
    text = text[:MAX_CHARACTERS]
    for value in _objects(text):
        words = value.get("answer") or value.get("final_answer")
        if isinstance(words, str):
            return " ".join(words.split())
    if headed := _under_heading(text):
        return headed
    stated = re.findall(r"\b(?:final[ \t]+)?answer[ \t]+is[ \t:]+([^\n]{1,400})", text, re.IGNORECASE)
    if stated and not NO_NAME.match(stated[-1]):
        return clean(stated[-1])
    has_header = any(re.match(rf"(?:{'|'.join(KNOWN)})\b", DECORATION.sub("", line), re.IGNORECASE) for line in text.splitlines())
    whole = " ".join(text.split())
    return "" if has_header or len(whole.split()) > MAX_FREE_WORDS or whole[:1] in "{[" or whole.endswith("?") else clean(whole)


def _under_heading(text: str) -> str:
    """Return the paragraph below the last heading `Answer`; empty if there is none, or it is too long to be the answer."""
    lines = [line.strip() for line in text.splitlines()]
    last = max((number for number, line in enumerate(lines) if ANSWER_HEADING.fullmatch(line)), default=None)
    following = [] if last is None else list(dropwhile(lambda line: not line, lines[last + 1 :]))
    words = " ".join(takewhile(lambda line: line and not line.startswith("#"), following))
    return clean(words) if len(words.split()) <= MAX_FREE_WORDS and not words.endswith("?") else ""


def lesion_object(text: str) -> dict[str, str]:
    """Return lesion, location and side of the first JSON object that has a lesion; empty without one."""
    for value in _objects(text[:MAX_CHARACTERS]):
        if isinstance(value.get("lesion"), str) and normal_form(value["lesion"]):
            return {name: clean(value[name]) if isinstance(value.get(name), str) else "" for name in ("lesion", "location", "side")}
    return {}


def _suggested(text: str) -> str:
    """Return the diagnosis of sentences that commit themselves less clearly, if all of the firmest kind name the same.

    Of a long text only the last paragraph does, or else the first.
    """
    paragraphs = PARAGRAPH_END.split(text.strip()) if len(text.split()) > MAX_SHORT_WORDS else [text]
    for paragraph in dict.fromkeys((paragraphs[-1], paragraphs[0])):
        for pattern in WEAKER:
            names = [name for match in pattern.finditer(paragraph) if (name := _name_behind(paragraph, match))]
            if names:
                return names[0] if len({normal_form(name) for name in names}) == 1 else ""
    return ""


def _name_behind(text: str, match: re.Match[str]) -> str:
    """Return the name behind a weaker statement; empty if it is denied, or if it is no diagnosis that fits."""
    if NOT_THIS.search(text[max(0, match.start() - 80) : match.end()].rstrip()):
        return ""
    name = _name(match["rest"].partition(" over ")[0] if "avo" in match[0] else match["rest"])
    return "" if OF_THE_CASE.match(name) else name


def _stated(text: str) -> str:
    """Return the last name that is called the diagnosis; a sentence that was cut off gives way to an earlier one."""
    text = BOLD.sub("", text)
    labels = [(start, True, _of_label(words)) for start, words in _labelled(text)]
    statements = list(labels)
    for match in AHEAD.finditer(text):
        before = _sentence_before(text, match)
        if not (NOT_THIS.search(before) or PREDICATE.search(before)):
            words = match["rest"].strip(" *_`") or _next_line(text[match.end("rest") :].split("\n"))
            complete = match.end("rest") < len(text) or bool(re.search(r"[.!?*\"')]", words))
            statements.append((match.start(), complete, _name(words)))
    for match in BEHIND.finditer(text):
        statements.append((match.start(), True, _name(_subject(_sentence_before(text, match)))))
    named = [(complete, start, name) for start, complete, name in statements if name]
    if len(text.split()) > MAX_ANSWER_WORDS and len({normal_form(name) for _, _, name in named}) > 1:
        starts = {start for start, _, _ in labels}
        named = [row for row in named if row[1] in starts or row[1] > END * len(text)]
    # complete ones are sorted behind the others
    return max(named, default=(False, 0, ""))[2]


def _sentence_before(text: str, match: re.Match[str]) -> str:
    """Return the words before a statement in its sentence."""
    return re.split(r"[.!?:;]\s|\n", text[max(0, match.start() - 300) : match.start()])[-1]


def _subject(words: str) -> str:
    """Return what a sentence says its predicate of: without `I believe that` and a circumstance before the comma; empty if it is denied."""
    if NOT_THIS.search(words):
        return ""
    plain = CLAUSE.split(BELIEF.sub("", DECORATION.sub("", words)))[-1]
    return plain.rpartition(", ")[2] if OPENER.match(plain) else plain


def _next_line(lines: list[str]) -> str:
    """Return the next line that is not empty, without its number; empty if it is the heading of another section."""
    following = next((line for line in lines[:4] if line.strip()), "")
    plain = DECORATION.sub("", following)
    return "" if LABEL.match(plain) else mark_of(plain).words or plain


def _labelled(text: str) -> Iterator[tuple[int, str]]:
    """Yield the place of each labelled line and the words behind its label, or the next line that is not empty."""
    place = 0
    lines = text.split("\n")
    for number, line in enumerate(lines):
        mark = mark_of(line)
        plain = DECORATION.sub("", mark.words if mark.number else line).rstrip(" *_`")
        match = LABEL.match(plain)
        if match and mark.indent < DEEP and (match["rest"] is not None or match.end() == len(plain)):
            rest = (match["rest"] or "").strip(" *_`")
            rest = (mark_of(rest).words or rest) if rest else _next_line(lines[number + 1 :])
            yield place, OF_FINDINGS.sub("", rest) if match["impression"] else rest
        place += len(line) + 1


def _of_label(words: str) -> str:
    """Return the name behind a label, or that the sentence behind it suggests."""
    if sentence := EVIDENCE.match(words):
        return _name(sentence["rest"])
    return "" if OPENER.match(words) else _name(RANK.sub("", words, count=1))


def _name(text: str, longest: int = MAX_WORDS) -> str:
    """Return the name at the beginning of a statement; empty if it begins with something else, or is longer than any name."""
    plain = NUMBER_BEHIND.sub("", " ".join(re.sub(r"[*_`]{1,3}", "", text).split())).lstrip("\"'(, ")
    for _ in range(3):
        plain = plain[match.end() :] if (match := OPENING.match(plain)) else plain
    if NO_NAME.match(plain) or not plain or BRACKETED.search(plain) or plain.partition(":")[0].upper() in KNOWN:
        return ""
    name = clean(ENDS.split(INLINE_NUMBER.split(plain)[0], maxsplit=1)[0])
    if len(BRACKETS.sub("", name).split()) > longest:
        name = CIRCUMSTANCE.split(name, maxsplit=1)[0]
    name = UNCLOSED.sub(r"\1", name)
    if not LETTER.search(name) or NAMES_NOTHING.fullmatch(name) or OF_A_SECTION.search(name) or "?" in name:
        return ""
    return name if normal_form(name) and len(BRACKETS.sub("", name).split()) <= longest else ""


def _listed(text: str, *, bare: bool) -> tuple[list[str], str]:
    """Return the names of the first list that is introduced as one of diagnoses, or (`bare`) that the answer begins with, and the other text."""
    lines = text.split("\n")
    marks = [mark_of(line) for line in lines]
    beginning = next((row for row, line in enumerate(lines) if line.strip()), 0)
    end = 0
    for start, mark in enumerate(marks):
        if start < end or not mark.kind or mark.number > 1:
            continue
        introduced = introduces(lines[end:start])
        if not introduced and is_heading(mark):
            continue
        entries, list_end = list_from(lines, marks, start)
        if len(entries) > 1 and LABEL.match(clean(entries[0])) and not LABEL.match(clean(entries[1])):
            continue  # sections: `1. Most likely diagnosis: X`, `2. Tests: Y`
        if introduced or (bare and start == beginning and (mark.number or list_end == len(lines))):
            names = list(_names_of(entries, headings="#" in mark.kind or is_heading(mark)))
            if names and names[0]:
                above = "\n".join(lines[:start]).rstrip()
                introduction = above.rpartition("\n")[2] if above.rstrip("*_ ").endswith(":") else ""
                return [name for name in names if name], "\n".join((above.removesuffix(introduction), GAP, *lines[list_end:]))
        end = end if is_heading(mark) else list_end
    return [], text


def _names_of(entries: list[str], *, headings: bool) -> Iterator[str]:
    """Yield the name of each entry; of headings until one is that of another section or of a group of diseases, and none of a single one."""
    for entry in entries:
        words = clean(entry.lstrip("*_ ").partition("**")[0]) if headings else entry
        noun = NOUNS.search(words)
        if headings and (len(entries) == 1 or (noun and not noun["diagnoses"]) or OF_A_GROUP.search(words)):
            return
        yield _entry(words)


def _entry(words: str) -> str:
    """Return the name of an entry of a list, empty for one that is a sentence or a part of the requested form."""
    entry = RANK.sub("", clean(words), count=1)
    entry = LABEL.sub(lambda label: label["rest"] or "", entry, count=1) if LABEL.match(entry) else entry
    name = LAST_BUT_ONE.sub("", _name(entry, MAX_LIST_WORDS))
    is_sentence = VERB.search(HEAD.split(BRACKETS.sub("", entry), maxsplit=1)[0])
    return "" if is_sentence or name.upper().partition(" ")[0] in KNOWN else name


def _only_names(text: str) -> list[str]:
    """Return the names of an answer that is nothing but names, one a line, or that begins with one and explains it."""
    lines = [line for line in text.split("\n") if line.strip()]
    names = [_bare(line) for line in lines[:MAX_BARE_LINES]]
    if len(names) == len(lines) and all(names):
        return names
    explained = FIRST_SENTENCE.match(text)
    return [_bare(explained[1])] if explained else []


def _bare(text: str) -> str:
    """Return the name that is a whole line, or that its only sentence says it is."""
    whole = " ".join(text.split())
    sentence = re.fullmatch(r"(?:it|this) is +(.*)", whole, re.IGNORECASE)
    plain = sentence[1] if sentence else whole
    if len(BRACKETS.sub("", plain).split()) > MAX_BARE_WORDS or not re.search(r"[^\W\d_]{3}", plain):
        return ""
    return "" if VERB.search(plain) or NO_BARE_NAME.search(plain) or re.search(r"[?:]|[.!;]\s", whole) else _name(plain)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text, outermost first; a text that is a list is one of diagnoses."""
    if isinstance(whole := read_json(text), list):
        yield {"diagnoses": whole}
    for value in objects_in(text):
        yield from _inner(valid_text(value), 0)


def _inner(value: Any, depth: int) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict) and depth < MAX_DEPTH:
        yield {re.sub(r"[^a-z]+", "_", str(key).lower()).strip("_"): entry for key, entry in value.items()}
        for entry in value.values():
            yield from _inner(entry, depth + 1)
    elif isinstance(value, list) and depth < MAX_DEPTH:
        for entry in value:
            yield from _inner(entry, depth + 1)


def _of_objects(text: str) -> tuple[str, ...]:
    """Return the diagnoses of the first object with a usual key: the single one first, then the ranked ones."""
    for value in _objects(text):
        keys = [next((key for key in FIRST_KEYS if key in value), ""), next((key for key in LIST_KEYS if key in value), "")]
        names = [name for key in keys if key for name in _names(value[key]) if normal_form(name)]
        if names:
            return tuple(dict.fromkeys(names))[:5]
    return ()


def _names(value: Any) -> list[str]:
    """Return the names in a value: a text, an object with a name or with one entry per rank, or a list of these."""
    if isinstance(value, str):
        return [_name(value)]
    if isinstance(value, dict):
        lowered = {str(key).lower(): entry for key, entry in value.items()}
        single = next((lowered[key] for key in NAME_KEYS if isinstance(lowered.get(key), str)), None)
        value = [single] if single is not None else [entry for key, entry in value.items() if RANK_KEY.fullmatch(str(key))]
    return [name for entry in value if isinstance(entry, str | dict) for name in _names(entry)] if isinstance(value, list) else []
