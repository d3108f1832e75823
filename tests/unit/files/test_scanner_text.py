"""Protocols, logs and pages of numbers are no clinical notes; letters, laboratory sheets and flow charts are, in every language."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fixtures.deid import NOTE
from fixtures.note_corpus import read_corpus
from neuralmedbench.files.texts import decode_text, is_scanner_text

FOUND = Path(os.environ.get("NMB_FOUND_SCANS", "")) / "scanner-text"
CARD = {"TR": "2300 ms", "TE": "2.98 ms", "Flip angle": "9 deg", "Slice thickness": "1.00 mm", "FoV read": "256 mm", "Averages": "1", "Coil": "HEA;HEP",
        "Orientation": "Sagittal", "Prio recon": "Off", "Fat suppr.": "None", "AutoAlign": "Head > Brain", "Filter": "Normalize"}  # fmt: skip
PROTOCOL = CARD | {f"{name} 2": value for name, value in CARD.items()}
NUMBERS = [[f"{place * 0.7 + axis:.4f}" for axis in range(6)] for place in range(40)]
DCM2NIIX = """Compression will be faster with pigz
Chris Rorden's dcm2niiX version v1.0.20230411 (JP2:OpenJPEG) GCC9.4.0 x86-64 (64-bit Linux)
Found 36 DICOM file(s)
Slices not stacked: echo varies (TE 2.46, 4.92; echo 1, 2). Use 'merge 2D slices' option to force stacking
Warning: Unable to determine slice direction: please check whether slices are flipped
Convert 36 DICOM as ./t1_3 (256x256x36x1)
Conversion required 0.812345 seconds (0.7 for core code).
"""
RECON = """/data/subjects/s1
/usr/local/freesurfer/bin/recon-all
-s s1 -all
setenv SUBJECTS_DIR /data/subjects
FREESURFER_HOME /usr/local/freesurfer
cputime      unlimited
#@# MotionCor
Found 1 runs
WARNING: only one run found. This is OK, but motion
correction cannot be performed on one run, so I'll
copy the run to rawavg and continue.
 cp /data/subjects/s1/mri/orig/001.mgz /data/subjects/s1/mri/rawavg.mgz
mri_convert.bin /data/subjects/s1/mri/rawavg.mgz
reading from /data/subjects/s1/mri/rawavg.mgz...
TR=7.92, TE=0.00, TI=0.00, flip angle=0.00
i_ras = (-1, 0, 0)
Reslicing using trilinear interpolation
"""
EDDY = "eddy --imain=data --mask=mask --out=eddy\nReading images\nRunning Register\n" + "\n".join(
    f"Iter: {n}, Total mss = {n / 7:.3f}" for n in range(20)
)
SCANNER_TEXTS = {
    "Siemens protocol": "\n".join(f"{name}\t{value}" for name, value in PROTOCOL.items()),
    "Siemens protocol with colons": "\n".join(f"{name}: {value}" for name, value in PROTOCOL.items()),
    "Philips protocol": "\n".join(f"{name} =\t\t{value};" for name, value in PROTOCOL.items()),
    "ASCCONV": "### ASCCONV BEGIN ###\n" + "\n".join(f"sSliceArray.asSlice[{n}].sPosition.dSag\t = \t{n}" for n in range(20)),
    "GE log": "\n".join(f"Thu Mar 14 2031 09:12:{n:02d} scn_sr[{1000 + n}]: waiting for the reconstruction to be finished" for n in range(20)),
    "dcmdump": "# Dicom-File-Format\n" + "\n".join(f"(0008,00{n:02x}) LO [WORDS OF A HEADER]  #  {n}, 1 ElementName" for n in range(40)),
    "table with a head": "time,x,y,z,pitch,roll\n" + "\n".join(map(",".join, NUMBERS)),
    "columns": "\n".join(map("  ".join, NUMBERS)),
    "physiology": "rate: 400\n" + "\n".join(str(n * 7) for n in range(300)),
    "bval": "0 1000 1000 1000 1000 1000 1000\n",
    "bvec": "0 0.1 0.2 -0.3\n0 1 0 0\n0 0.3 0.9 0.2\n",
    "dcm2niix": DCM2NIIX,
    "eddy": EDDY,
    "recon-all": RECON,
    "statistics": "# Title Segmentation Statistics\n" + "\n".join(f"{n} {n * 4} {n * 90} 656.1 Left-Ventricle 28.5 12.1 7.4 88.0" for n in range(40)),
    "sidecar": "{\n" + "\n".join(f'  "{name}{n}": {n},' for n in range(6) for name in ("EchoTime", "FlipAngle", "SliceThickness")) + "\n}",
}  # fmt: skip
LABS = {"Na": "138", "K": "4.1", "Glucose": "5.1", "Creatinine": "80", "Hb": "14", "CRP": "3", "Leuko": "7.1", "ALT": "30", "Ca": "2.3"}
FORM = {"Age": "61", "Referral": "GP", "Allergies": "none", "Gait": "normal", "Tone": "increased left", "Power": "4/5 left arm", "Reflexes": "brisk",
        "Plantars": "up left", "Speech": "fluent", "MRI": "pending", "CT": "no bleed", "Sensation": "intact"}  # fmt: skip
FORM_DE = {
    "Alter": "61",
    "Allergien": "keine",
    "Gang": "sicher",
    "Kraft": "4/5 Arm links",
    "Reflexe": "lebhaft",
    "Sprache": "flüssig",
    "MRT": "T1, T2",
}
NOTES = {
    "letter": NOTE,
    "letter with a laboratory table": NOTE + "\n".join(f"{name}\t{value}\tmmol/L\t1-9" for name, value in LABS.items()) * 4,
    "laboratory sheet": "\n".join(f"{name} {value} mmol/L (1.0-9.0)" for name, value in LABS.items()) * 3,
    "laboratory sheet without units": "\n".join(f"{name} {value} 1-9" for name, value in LABS.items()) * 3,
    "laboratory values with signs": "\n".join(f"{name} = {value}" for name, value in LABS.items()) * 3,
    "flow chart": "\n".join(f"{hour:02d}:00 HR {70 + hour} BP 120/80 SpO2 98% RR 16 Temp 36.{hour % 9}" for hour in range(24)),
    "blood pressures by day": "\n".join(f"{day:02d}.03.2031   {110 + day}/80   {70 + day}   36.{day % 9}   98" for day in range(1, 20)),
    "glucose by time": "\n".join(f"2031-03-{day:02d} 08:00:00 {5 + day / 10:.1f}" for day in range(1, 20)),
    "nursing lines": "\n".join(f"2031-03-14 {hour:02d}:00:00 Patient resting, obs stable" for hour in range(20)),
    "medicines": "Levetiracetam 500 mg 1-0-1\nRamipril 5 mg 1-0-0\n" * 10,
    "form": "\n".join(f"{name}: {value}" for name, value in FORM.items()) * 3,
    "German form": "\n".join(f"{name}: {value}" for name, value in FORM_DE.items()) * 4,
    "German list": "Z.n. Hirninfarkt\nV.a. Epilepsie\no.B. im Labor\nz.B. Schwindel\n" * 5,
    "shorthand with signs": "HSV -ve VZV -ve\nCSF -ve, bloods -ve\nFound unwell\nWarning signs told\nConvert to oral\n" * 5,
    "neuropsychology": "Digit span forward\t6\t45\t30\nTrail making A\t45\t38\t12\nVerbal fluency\t12\t33\t5\n" * 6,
    "codes": "\n".join(f"G4{n}.{n} R{n}0.{n}" for n in range(9)) * 2,
    "report": "MRI BRAIN\nT1 sagittal, slice thickness 5 mm, TR 500, TE 10\nT2 axial, TR 4000, TE 100\nFLAIR, TI 2500\nNo bleed.\nAcute infarct.\n" * 3,
    "shorthand": "61F L hemi\nNIHSS 16\nLKW 0812\nCT neg\ntPA 0905\n",
    "Markdown": "# History\n\n- headache\n\n----\n\n# Exam\n\n- GCS 15\n- power 5/5\n\n----\n# Plan\n- MRI\n----\n" * 2,
    "French": "La patiente se plaint de céphalées depuis trois jours, sans fièvre.\n" * 4 + "TA: 120/80\nFC: 70\n",
    "Spanish": "El paciente refiere dolor de cabeza desde hace tres días, sin fiebre.\n" * 4,
    "Turkish": "Hasta üç gündür baş ağrısından yakınıyor, ateşi yok.\n" * 4,
    "Polish": "Pacjentka skarży się na ból głowy od trzech dni, bez gorączki.\n" * 4,
    "Chinese": "患者男性，61岁，头痛三天，伴恶心呕吐。\n" * 5 + "血压 120/80\n",
    "Japanese": "患者は山田太郎さんです。頭痛を訴えています。\n" * 5,
    "Russian": "Пациентка жалуется на головную боль в течение трёх дней.\n" * 5,
    "Greek": "Ο ασθενής παραπονείται για πονοκέφαλο εδώ και τρεις ημέρες.\n" * 5,
    "Hebrew": "המטופלת מתלוננת על כאבי ראש מזה שלושה ימים ללא חום.\n" * 5,
    "Arabic": "المريضة تشكو من صداع منذ ثلاثة أيام بدون حمى.\n" * 5,
    "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("name", SCANNER_TEXTS)
def test_a_text_of_a_scanner_is_recognised(name: str) -> None:
    assert is_scanner_text(SCANNER_TEXTS[name])


@pytest.mark.parametrize("name", NOTES)
def test_a_note_stays_a_note(name: str) -> None:
    assert not is_scanner_text(NOTES[name])


@pytest.mark.parametrize("half", ["open", "held_out"])
def test_no_note_of_the_corpus_is_lost(half: str) -> None:
    assert [note for note in read_corpus(half) if is_scanner_text(note.text)] == []


@pytest.mark.skipif(not os.environ.get("NMB_FOUND_SCANS"), reason="NMB_FOUND_SCANS names no folder of scans")
@pytest.mark.parametrize("name", ["DTI_S2MB2.txt", "fcMRI.txt"])
def test_the_given_protocols_are_recognised(name: str) -> None:
    assert is_scanner_text(decode_text((FOUND / name).read_bytes()))
