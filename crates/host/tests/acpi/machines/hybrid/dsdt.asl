// A machine of two kinds of core, written for eft: numbers of both in memory, each core's kind from a map of bits.
DefinitionBlock ("", "DSDT", 2, "EFT", "HYBRID", 1)
{
    OperationRegion (GNVS, SystemMemory, 0x5FFCA000, 0x200)
    Field (GNVS, AnyAcc, Lock, Preserve)
    {
        OSYS, 16, MMSO, 32, BGMA, 64, Offset (0x30), HWPE, 8, MNOP, 8, BIGM, 32, CPPC, 8, ECNO, 8
    }
    Scope (\_SB)
    {
        Device (PC00)
        {
            Name (_HID, EisaId ("PNP0A08"))
            Name (_BBN, 0)
            OperationRegion (MCHT, SystemMemory, BGMA, 0x6000)
            Field (MCHT, ByteAcc, NoLock, Preserve) { Offset (0x5994), RPSL, 8, RPFU, 8 }
            OperationRegion (VTDR, PCI_Config, 0, 0x100)
            Field (VTDR, DWordAcc, NoLock, Preserve) { Offset (0xE4), CAPA, 32 }
            Device (LPCB)
            {
                Name (_ADR, 0x001F0000)
                Device (H_EC)
                {
                    Name (_HID, EisaId ("PNP0C09"))
                    OperationRegion (ECF2, EmbeddedControl, 0, 0xFF)
                    Field (ECF2, ByteAcc, Lock, Preserve) { ECRD, 8, PLMX, 8 }
                }
            }
        }
        If (LEqual (ECNO, 1))
        {
            If (LGreater (PC00.LPCB.H_EC.PLMX, 10)) { Name (WARM, 1) }
        }
        Processor (PR00, 0, 0x1810, 6) {}
        Processor (PR01, 1, 0x1810, 6) {}
        Processor (PR02, 2, 0x1810, 6) {}
        Processor (PR03, 3, 0x1810, 6) {}
    }
    If (LEqual (MMSO, 0x10))
    {
        Scope (\_SB.PC00) { Device (GFX0) { Name (_ADR, 0x00020000) } }
    }
    ElseIf (LEqual (MMSO, 0x20))
    {
        Scope (\_SB.PC00) { Device (GFX0) { Name (_ADR, 0x00020000) Name (TWIN, 1) } }
    }
    Else
    {
        Scope (\_SB.PC00) { Device (PEG0) { Name (_ADR, 0x00010000) } }
    }
}
