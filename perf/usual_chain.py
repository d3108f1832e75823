"""Process raw DICOM to PNG with the settings of tutorials and tool defaults, as a comparison for `imaging_chain.py`.

Headers by dicom-anonymizer with defaults, dcm2niix with gzip, N4 with a shrink factor of 4 voxels and four levels of 50 iterations,
rigid registration to the first series in three levels with a tenth of the voxels, resampling to 1 mm, pictures. It neither removes
faces nor finds the brain, so it does less than our chain.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

SLICES = 8


def parse_args(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--in", dest="source", type=Path, required=True, help="folder with one folder of DICOM files per series")
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    return parser.parse_args(argv)


def anonymise(series: Path, out: Path) -> None:
    import pydicom
    from dicomanonymizer import anonymize_dataset

    out.mkdir(parents=True)
    for path in sorted(series.iterdir()):
        dataset = pydicom.dcmread(path)
        uid = dataset.SeriesInstanceUID
        anonymize_dataset(dataset)
        dataset.PatientID, dataset.SeriesInstanceUID = "patient", uid
        dataset.save_as(out / path.name, enforce_file_format=True)


def convert(series: Path, out: Path) -> Path:
    import subprocess

    from dcm2niix import bin as dcm2niix

    out.mkdir(parents=True)
    subprocess.run([dcm2niix, "-z", "y", "-b", "y", "-f", series.name, "-o", out, series], check=True, capture_output=True)
    return max(out.glob("*.nii.gz"), key=lambda path: path.stat().st_size)


def correct(image: Any) -> Any:
    import SimpleITK as sitk

    mask = sitk.OtsuThreshold(image, 0, 1, 200)
    small, small_mask = (sitk.Shrink(one, [4, 4, 4 if image.GetSpacing()[2] < 2 else 1]) for one in (image, mask))
    method = sitk.N4BiasFieldCorrectionImageFilter()
    method.SetMaximumNumberOfIterations([50] * 4)
    method.Execute(small, small_mask)
    return sitk.Cast(image / sitk.Cast(sitk.Exp(method.GetLogBiasFieldAsImage(image)), sitk.sitkFloat32), sitk.sitkFloat32)


def register(fixed: Any, moving: Any) -> Any:
    import SimpleITK as sitk

    method = sitk.ImageRegistrationMethod()
    method.SetMetricAsMattesMutualInformation(50)
    method.SetMetricSamplingStrategy(method.RANDOM)
    method.SetMetricSamplingPercentage(0.1, 1)
    method.SetInterpolator(sitk.sitkLinear)
    method.SetOptimizerAsGradientDescent(1.0, 100, convergenceMinimumValue=1e-6, convergenceWindowSize=10)
    method.SetOptimizerScalesFromPhysicalShift()
    method.SetShrinkFactorsPerLevel([4, 2, 1])
    method.SetSmoothingSigmasPerLevel([2, 1, 0])
    method.SmoothingSigmasAreSpecifiedInPhysicalUnitsOn()
    start = sitk.CenteredTransformInitializer(fixed, moving, sitk.Euler3DTransform(), sitk.CenteredTransformInitializerFilter.GEOMETRY)
    method.SetInitialTransform(start, inPlace=False)
    return method.Execute(fixed, moving)


def write_pictures(image: Any, folder: Path, name: str) -> None:
    import SimpleITK as sitk
    from PIL import Image

    voxels = sitk.GetArrayFromImage(sitk.DICOMOrient(image, "LPS"))
    low, high = np.percentile(voxels, [0.5, 99.5])
    for index in np.linspace(len(voxels) * 0.2, len(voxels) * 0.9, SLICES).astype(int):
        grey = np.clip((voxels[index] - low) / max(high - low, 1e-6), 0, 1) * 255
        Image.fromarray(grey.astype(np.uint8)).resize((512, 512)).save(folder / f"{name}_{index:03d}.png")


def main(argv: Sequence[str] | None = None) -> int:
    import SimpleITK as sitk

    args = parse_args(argv)
    sitk.ProcessObject.SetGlobalDefaultNumberOfThreads(1)
    pictures = args.out / "png"
    pictures.mkdir(parents=True)
    reference = None
    for series in sorted(path for path in args.source.iterdir() if path.is_dir()):
        anonymise(series, args.out / "dicom" / series.name)
        path = convert(args.out / "dicom" / series.name, args.out / "nifti" / series.name)
        image = correct(sitk.ReadImage(str(path), sitk.sitkFloat32))
        if reference is None:
            reference = sitk.Resample(
                image,
                [round(n * s) for n, s in zip(image.GetSize(), image.GetSpacing(), strict=True)],
                sitk.Transform(),
                sitk.sitkLinear,
                image.GetOrigin(),
                [1.0] * 3,
                image.GetDirection(),
            )
            placed = reference
        else:
            placed = sitk.Resample(image, reference, register(reference, image), sitk.sitkLinear)
        sitk.WriteImage(placed, str(args.out / f"{series.name}.nii.gz"))
        write_pictures(placed, pictures, series.name)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
