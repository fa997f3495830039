// The notebook's second table: states as firmware chooses, shortens, computes and patches them. Written for eft.
DefinitionBlock ("", "SSDT", 2, "EFT", "SPEEDS", 1)
{
    External (\_SB.PR00, DeviceObj)
    External (\_SB.PR01, DeviceObj)
    External (\_SB.PR02, DeviceObj)
    External (\_SB.PR03, DeviceObj)
    External (\_SB.PR04, DeviceObj)
    External (\_SB.PR05, DeviceObj)
    External (\_SB.PR06, DeviceObj)
    External (\_SB.PR07, DeviceObj)
    External (\_SB.PDC0, IntObj)
    External (\_SB.MODE, IntObj)
    External (\_SB.PCI0.LPCB.STRP, FieldUnitObj)
    External (\_SB.PCI0.LPCB.EC0.ECLV, FieldUnitObj)
    External (\CFGD, FieldUnitObj)
    External (\OSYS, FieldUnitObj)
    External (\HWPV, FieldUnitObj)
    External (\EPPS, FieldUnitObj)
    External (\LVL0, FieldUnitObj)
    External (\PWRL, FieldUnitObj)
    External (\CFLG, FieldUnitObj)
    External (\SIO0, FieldUnitObj)
    External (\TMR0, FieldUnitObj)

    // PR00: the same states whatever is read.
    Scope (\_SB.PR00)
    {
        Name (LPSS, Package ()
        {
            Package () { 2400, 15000, 10, 10, 0x1800, 0x1800 },
            Package () { 1200, 6000, 10, 10, 0x0C00, 0x0C00 }
        })
        Name (TPSS, Package ()
        {
            Package () { 2401, 15000, 10, 10, 0x1D00, 0x1D00 },
            Package () { 2400, 15000, 10, 10, 0x1800, 0x1800 },
            Package () { 1800, 9000, 10, 10, 0x1200, 0x1200 },
            Package () { 1200, 6000, 10, 10, 0x0C00, 0x0C00 }
        })
        Method (_PDC, 1)
        {
            CreateDWordField (Arg0, 0, REVS)
            CreateDWordField (Arg0, 4, SIZE)
            Store (SizeOf (Arg0), Local0)
            Store (Subtract (Local0, 8), Local1)
            CreateField (Arg0, 64, Multiply (Local1, 8), TEMP)
            Name (STS0, Buffer (4) { 0, 0, 0, 0 })
            Concatenate (STS0, TEMP, Local2)
            CreateDWordField (Local2, 4, CAPS)
            Store (CAPS, \_SB.PDC0)
        }
        Method (_PSS, 0)
        {
            If (LAnd (And (CFGD, 1), And (PDC0, 0x80000000))) { Return (LPSS) }
            Store (TPSS, Local0)
            If (LEqual (MODE, 2)) { Store (1, Local1) } Else { Store (1, Local1) }
            If (LNotEqual (Local1, 1)) { Return (LPSS) }
            Return (Local0)
        }
    }

    // PR01: one list or another.
    Scope (\_SB.PR01)
    {
        Method (_PSS, 0)
        {
            If (LGreaterEqual (OSYS, 2015)) { Return (\_SB.PR00.TPSS) }
            Return (\_SB.PR00.LPSS)
        }
    }

    // PR02: a list that is patched: power from the tables, a state that is written when a strap is set.
    Scope (\_SB.PR02)
    {
        Name (STAT, Package ()
        {
            Package () { 3000, 20000, 10, 10, 0, 0 },
            Package () { 2000, 12000, 10, 10, 1, 1 },
            Package () { 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000, 0x80000000 }
        })
        Method (_PSS, 0)
        {
            If (And (\_SB.PCI0.LPCB.STRP, 1))
            {
                Store (PWRL, Index (DerefOf (Index (STAT, 0)), 1))
            }
            Return (STAT)
        }
    }

    // PR03: computed in a loop whose bound is read, with a way out in its middle.
    Scope (\_SB.PR03)
    {
        Method (_PSS, 0)
        {
            Store (Package (3)
            {
                Package () { 2000, 10000, 10, 10, 2, 2 },
                Package () { 1500, 8000, 10, 10, 1, 1 },
                Package () { 1000, 5000, 10, 10, 0, 0 }
            }, Local0)
            Store (0, Local1)
            Store (0, Local2)
            While (LLess (Local1, 3))
            {
                If (LEqual (LVL0, Local1)) { Break }
                Store (Add (Local2, 7), Local2)
                Increment (Local1)
            }
            Store (Local2, Index (DerefOf (Index (Local0, 1)), 5))
            Return (Local0)
        }
    }

    // PR04: the embedded controller, the timer, an indexed register and the clock's memory decide nothing that matters.
    Scope (\_SB.PR04)
    {
        Method (_PSS, 0)
        {
            Store (\_SB.PCI0.LPCB.EC0.ECLV, Local0)
            Add (Local0, TMR0, Local1)
            If (LOr (LGreater (Local1, SIO0), CFLG)) { Increment (Local0) }
            Store (Timer, Local2)
            Return (\_SB.PR00.LPSS)
        }
    }

    // PR05: has states or not.
    If (HWPV)
    {
        Scope (\_SB.PR05) { Name (_PSS, Package () { Package () { 1700, 7000, 10, 10, 4, 4 } }) }
    }
    If (CondRefOf (\_SB.PR06))
    {
        Scope (\_SB.PR06) { Name (_PSS, Package () { Package () { 1100, 3000, 10, 10, 1, 1 } }) }
    }

    // PR07: a helper decides and returns early on some ways.
    Scope (\_SB.PR07)
    {
        Name (KIND, 0)
        Method (PICK, 1)
        {
            If (EPPS) { Store (1, KIND) Return (Arg0) }
            Store (2, KIND)
            If (LVL0) { Return (Arg0) }
            Return (Add (Arg0, 0))
        }
        Method (_PSS, 0)
        {
            Store (PICK (900), Local0)
            Store (Package () { Package () { 1800, 0, 10, 10, 3, 3 }, Package () { 900, 450, 10, 10, 0, 1 } }, Local1)
            Store (Local0, Index (DerefOf (Index (Local1, 0)), 1))
            Store (KIND, Index (DerefOf (Index (Local1, 1)), 4))
            Return (Local1)
        }
    }
}
