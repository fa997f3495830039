// A whole notebook in the manner of its firmware, written for eft: what is there, and which states, hangs on variables in
// memory, a PCI register, the clock's memory and the embedded controller, at module level and in methods.
DefinitionBlock ("", "DSDT", 2, "EFT", "NOTEBOOK", 1)
{
    OperationRegion (GNVS, SystemMemory, 0x7FB0E000, 0x40)
    Field (GNVS, AnyAcc, Lock, Preserve)
    {
        OSYS, 16, SMIF, 8, Offset (0x04), MMSO, 32, CFGD, 32, TCNT, 8, PPCM, 8,
        Offset (0x10), HWPV, 1, EPPS, 1, , 6, LVL0, 8, LVL1, 8, PWRL, 16
    }
    OperationRegion (RTCM, SystemCMOS, 0, 0x80)
    Field (RTCM, ByteAcc, NoLock, Preserve) { Offset (0x40), CFLG, 8 }
    OperationRegion (PMIO, SystemIO, 0x1800, 0x80)
    Field (PMIO, DWordAcc, NoLock, Preserve) { Offset (0x08), TMR0, 32 }
    Field (PMIO, ByteAcc, NoLock, Preserve) { IDX, 8, DAT, 8 }
    IndexField (IDX, DAT, ByteAcc, NoLock, Preserve) { Offset (0x20), SIO0, 8 }

    Scope (\_SB)
    {
        Name (PDC0, 0)
        Device (PCI0)
        {
            Name (_HID, EisaId ("PNP0A08"))
            Name (_BBN, 0)
            Device (LPCB)
            {
                Name (_ADR, 0x001F0000)
                OperationRegion (LPC0, PCI_Config, 0, 0x100)
                Field (LPC0, AnyAcc, NoLock, Preserve) { VEND, 16, DEVI, 16, Offset (0xA0), STRP, 8 }
                Device (EC0)
                {
                    Name (_HID, EisaId ("PNP0C09"))
                    OperationRegion (ECOR, EmbeddedControl, 0, 0xFF)
                    Field (ECOR, ByteAcc, NoLock, Preserve) { ECLV, 8 }
                }
            }
        }
        // What a load used to end at: a region whose place is read, then conditionals around all that follows.
        OperationRegion (ERMM, SystemMemory, MMSO, 0x1000)
        Field (ERMM, AnyAcc, NoLock, Preserve) { ERM0, 32 }
    }
    Scope (\_SB) { Name (MODE, 0) }
    If (LEqual (MMSO, 0))
    {
        Scope (\_SB) { Store (1, MODE) Device (CWDT) { Name (_ADR, 7) } }
    }
    Else
    {
        Scope (\_SB) { Store (2, MODE) Method (ONLY, 0) { Return (ERM0) } }
    }
    If (LGreaterEqual (OSYS, 2009))
    {
        Name (SEEN, 0)
        While (LLess (SEEN, SMIF)) { Increment (SEEN) }
    }

    Scope (\_SB)
    {
        Processor (PR00, 1, 0x1810, 6) {}
        Processor (PR01, 2, 0x1810, 6) {}
        Processor (PR02, 3, 0x1810, 6) {}
        Processor (PR03, 4, 0x1810, 6) {}
        Processor (PR04, 5, 0x1810, 6) {}
        Processor (PR05, 6, 0x1810, 6) {}
        If (LGreater (TCNT, 6))
        {
            Processor (PR06, 7, 0x1810, 6) {}
        }
        Device (PR07)
        {
            Name (_HID, "ACPI0007")
            Name (_UID, 8)
        }
    }
}
