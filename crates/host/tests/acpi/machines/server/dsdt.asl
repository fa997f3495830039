// A server with two sockets, written for eft: a container for each, the second behind a conditional on what firmware
// counted, and each processor's _STA from a map in memory.
DefinitionBlock ("", "DSDT", 2, "EFT", "SERVER", 1)
{
    OperationRegion (PSYS, SystemMemory, 0x6C7E4000, 0x400)
    Field (PSYS, ByteAcc, NoLock, Preserve)
    {
        PLAT, 32, SKTN, 8, TPMV, 8, Offset (0x10), APC0, 32, APC1, 32, Offset (0x20), MMSO, 32, PSTA, 8, XMMP, 32
    }
    OperationRegion (RTCC, SystemCMOS, 0, 0x40)
    Field (RTCC, ByteAcc, NoLock, Preserve) { Offset (0x0E), DIAG, 8 }
    If (LGreater (PLAT, 0))
    {
        Scope (\_SB)
        {
            Device (PCI0) { Name (_HID, EisaId ("PNP0A08")) Name (_BBN, 0) }
        }
    }
    Else
    {
        Scope (\_SB)
        {
            Device (PCI0) { Name (_HID, EisaId ("PNP0A08")) Name (_BBN, 0) Name (OLD, 1) }
        }
    }
    Scope (\_SB.PCI0)
    {
        Device (UBOX)
        {
            Name (_ADR, 0x00080002)
            OperationRegion (UBCF, PCI_Config, 0, 0x100)
            Field (UBCF, DWordAcc, NoLock, Preserve) { Offset (0xD0), CFGB, 32 }
        }
        // A base that is read, and what lies there read at once.
        OperationRegion (XMMR, SystemMemory, Add (XMMP, 0x1000), 0x100)
        Field (XMMR, DWordAcc, NoLock, Preserve) { XMM0, 32 }
        If (And (XMM0, UBOX.CFGB))
        {
            Device (SPD0) { Name (_ADR, 0x001F0003) }
        }
    }
    Scope (\_SB)
    {
        Device (SCK0)
        {
            Name (_HID, "ACPI0004")
            Name (_UID, 0)
            Device (CP00) { Name (_HID, "ACPI0007") Name (_UID, 0) Method (_STA, 0) { Return (Multiply (And (APC0, 1), 15)) } }
            Device (CP01) { Name (_HID, "ACPI0007") Name (_UID, 1) Method (_STA, 0) { Return (Multiply (And (ShiftRight (APC0, 1), 1), 15)) } }
        }
    }
    If (LGreater (SKTN, 1))
    {
        Scope (\_SB)
        {
            Device (SCK1)
            {
                Name (_HID, "ACPI0004")
                Name (_UID, 1)
                Device (CP00) { Name (_HID, "ACPI0007") Name (_UID, 32) Method (_STA, 0) { Return (Multiply (And (APC1, 1), 15)) } }
                Device (CP01) { Name (_HID, "ACPI0007") Name (_UID, 33) Method (_STA, 0) { Return (Multiply (And (ShiftRight (APC1, 1), 1), 15)) } }
            }
        }
    }
    Scope (\_SB)
    {
        Name (PDCV, 0)
        Method (OSPD, 1)
        {
            CreateDWordField (Arg0, 8, CAPV)
            Or (PDCV, CAPV, PDCV)
        }
    }
    If (LEqual (DIAG, 0))
    {
        Scope (\_SB.SCK0) { Name (GOOD, 1) }
    }
}
