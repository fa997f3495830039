// A laptop in the manner of Intel's reference firmware, written for eft. All that follows the first lines stands in
// conditionals on variables in memory, as does where the memory-mapped registers lie.
DefinitionBlock ("", "DSDT", 2, "EFT", "LAPTOP", 1)
{
    OperationRegion (GNVS, SystemMemory, 0x8CB1A000, 0x100)
    Field (GNVS, AnyAcc, Lock, Preserve)
    {
        OSYS, 16, SMIF, 8, PRM0, 8, MMSO, 32, MMBA, 32, CFGD, 32, TCNT, 8, PPCM, 8, PPLT, 8, Offset (0x40), LIDS, 8, PWRS, 8
    }
    Name (PEBS, 0xE0000000)
    // On some boards the registers lie elsewhere, and so does the whole tree.
    If (LEqual (MMSO, 0))
    {
        Scope (\_SB)
        {
            Device (PCI0)
            {
                Name (_HID, EisaId ("PNP0A08"))
                Name (_BBN, 0)
                Name (KIND, 1)
            }
        }
    }
    Else
    {
        Scope (\_SB)
        {
            Device (PCI0)
            {
                Name (_HID, EisaId ("PNP0A08"))
                Name (_BBN, 0)
                Name (KIND, 2)
                OperationRegion (MMRG, SystemMemory, MMBA, 0x1000)
                Field (MMRG, DWordAcc, NoLock, Preserve) { MMR0, 32, MMR1, 32 }
            }
        }
    }
    Scope (\_SB.PCI0)
    {
        Device (MCHC)
        {
            Name (_ADR, 0)
            OperationRegion (HBUS, PCI_Config, 0, 0x100)
            Field (HBUS, DWordAcc, NoLock, Preserve) { Offset (0x40), EPEN, 1, , 11, EPBR, 20, Offset (0xA0), TOLU, 32 }
        }
        // At module level, from PCI configuration.
        OperationRegion (EPRG, SystemMemory, ShiftLeft (MCHC.EPBR, 12), 0x1000)
        Field (EPRG, AnyAcc, NoLock, Preserve) { EPR0, 32 }
        Device (LPCB)
        {
            Name (_ADR, 0x001F0000)
            OperationRegion (LPC0, PCI_Config, 0, 0x100)
            Field (LPC0, AnyAcc, NoLock, Preserve) { Offset (0x40), PMBA, 16 }
            OperationRegion (PMIO, SystemIO, And (PMBA, 0xFF80), 0x80)
            Field (PMIO, DWordAcc, NoLock, Preserve) { Offset (0x08), TMR0, 32 }
            Device (EC0)
            {
                Name (_HID, EisaId ("PNP0C09"))
                OperationRegion (ECOR, EmbeddedControl, 0, 0xFF)
                Field (ECOR, ByteAcc, NoLock, Preserve) { Offset (0x10), THRM, 8, ADPT, 1 }
            }
        }
        If (LAnd (LEqual (LPCB.EC0.ADPT, 1), LNotEqual (LIDS, 0)))
        {
            Device (DOCK) { Name (_HID, EisaId ("PNP0C15")) }
        }
    }
    OperationRegion (RTCM, SystemCMOS, 0, 0x80)
    Field (RTCM, ByteAcc, NoLock, Preserve) { Offset (0x70), BAST, 8 }
    // Older firmware names processors under \_PR, newer under \_SB; both are here.
    If (LGreaterEqual (MMSO, 1))
    {
        Scope (\_SB)
        {
            Processor (PR00, 1, 0x1810, 6) {}
            Processor (PR01, 2, 0x1810, 6) {}
        }
    }
    Else
    {
        Scope (\_SB)
        {
            Processor (PR00, 1, 0x1810, 6) {}
            Processor (PR01, 2, 0x1810, 6) {}
        }
    }
    Scope (\_SB)
    {
        Processor (PR02, 3, 0x1810, 6) {}
        Processor (PR03, 4, 0x1810, 6) {}
        If (LGreater (TCNT, 4))
        {
            Processor (PR04, 5, 0x1810, 6) {}
        }
    }
    If (LNotEqual (BAST, 0x55))
    {
        Scope (\_SB.PR03) { Name (BOOT, 1) }
    }
}
