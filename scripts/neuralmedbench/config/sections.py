"""Headings of the parts of a note that hold the answer."""

from __future__ import annotations

CUT_SECTIONS = (
    # English
    "impression", "imp", "diagnosis", "diagnoses", "dx", "ddx", "differential", "differential diagnosis", "assessment", "assessment and plan", "a/p", "a&p",
    "plan", "conclusion", "conclusions", "opinion", "interpretation", "formulation", "radiology report", "imaging report", "mri report", "ct report",
    "report", "imaging", "neuroimaging", "radiology", "mri", "mr", "ct", "mri brain", "mri head", "ct head", "ct brain", "pathology", "histology",
    # German, Dutch
    "beurteilung", "diagnose", "diagnosen", "zusammenfassung", "procedere", "befund", "conclusie", "beleid", "beoordeling", "verslag",
    # French, Spanish, Italian, Portuguese
    "diagnostic", "synthèse", "conduite à tenir", "interprétation", "compte rendu", "impresión", "diagnóstico", "conclusión", "conclusiones",
    "juicio clínico", "valoración", "informe", "diagnosi", "conclusioni", "impressione", "referto", "conclusão", "hipótese diagnóstica", "impressão",
    "avaliação", "laudo",
    # Swedish, Danish, Norwegian, Polish
    "bedömning", "diagnos", "vurdering", "konklusion", "konklusjon", "rozpoznanie", "wnioski",
)  # fmt: skip
