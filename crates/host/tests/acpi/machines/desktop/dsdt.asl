// A desktop in the manner of AMD's firmware, written for eft: processors as devices of a platform, states in a table of
// their own, and a debug port, CMOS and the northbridge asked at module level.
DefinitionBlock ("", "DSDT", 2, "EFT", "DESKTOP", 1)
{
    OperationRegion (DBG0, SystemIO, 0x80, 1)
    Field (DBG0, ByteAcc, NoLock, Preserve) { IO80, 8 }
    OperationRegion (CMPT, SystemIO, 0x72, 2)
    Field (CMPT, ByteAcc, NoLock, Preserve) { CMPI, 8, CMPD, 8 }
    IndexField (CMPI, CMPD, ByteAcc, NoLock, Preserve) { Offset (0x4F), NTHR, 8, Offset (0x60), BRDT, 8 }
    OperationRegion (CMOS, SystemCMOS, 0, 0x100)
    Field (CMOS, ByteAcc, NoLock, Preserve) { Offset (0x58), CPB0, 8 }
    OperationRegion (NVSA, SystemMemory, 0xBFE71018, 0x40)
    Field (NVSA, AnyAcc, Lock, Preserve) { PSEN, 8, TOPM, 32, PSTN, 8, MMSO, 32 }
    Store (0xD1, IO80)
    Scope (\_SB)
    {
        Device (PCI0)
        {
            Name (_HID, EisaId ("PNP0A08"))
            Name (_BBN, 0)
            Device (AMDN)
            {
                Name (_ADR, 0x00180003)
                OperationRegion (NBCF, PCI_Config, 0, 0x100)
                Field (NBCF, DWordAcc, NoLock, Preserve) { Offset (0xE8), NBCP, 32 }
            }
        }
        Device (PLTF)
        {
            Name (_HID, "ACPI0010")
            Name (_UID, One)
            Device (C000) { Name (_HID, "ACPI0007") Name (_UID, 0) }
            Device (C001) { Name (_HID, "ACPI0007") Name (_UID, 1) }
            Device (C002) { Name (_HID, "ACPI0007") Name (_UID, 2) }
            Device (C003) { Name (_HID, "ACPI0007") Name (_UID, 3) }
        }
    }
    If (LEqual (And (\_SB.PCI0.AMDN.NBCP, 0x3000), 0))
    {
        Name (CORE, 4)
    }
    Else
    {
        Name (CORE, 8)
    }
    Switch (ToInteger (BRDT))
    {
        Case (1) { Name (BNAM, "one") }
        Case (2) { Name (BNAM, "two") }
        Default { Name (BNAM, "other") }
    }
    If (LNotEqual (MMSO, 0))
    {
        Scope (\_SB.PLTF)
        {
            Device (C004) { Name (_HID, "ACPI0007") Name (_UID, 4) }
            Device (C005) { Name (_HID, "ACPI0007") Name (_UID, 5) }
        }
    }
}
