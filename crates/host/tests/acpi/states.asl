// The states of the desktop's processors. Written for eft.
DefinitionBlock ("", "SSDT", 2, "EFT", "STATES", 1)
{
    External (\_PR.CPU0, DeviceObj)
    External (\_PR.CPU1, DeviceObj)
    External (\CAPS, IntObj)
    Scope (\_PR.CPU0)
    {
        Name (NPSS, Package ()
        {
            Package () { 2267, 80000, 10, 10, 0x11, 0x11 },
            Package () { 1867, 55000, 10, 10, 0x0E, 0x0E },
            Package () { 1600, 34000, 10, 10, 0x0C, 0x0C }
        })
        Method (_PSS, 0)
        {
            Store (0, Local0)
            While (LLess (Local0, SizeOf (NPSS)))
            {
                Store (DerefOf (Index (NPSS, Local0)), Local1)
                Store (Add (DerefOf (Index (Local1, 2)), 1), Index (DerefOf (Index (NPSS, Local0)), 3))
                Increment (Local0)
            }
            Return (NPSS)
        }
        Method (_PPC, 0) { If (And (CAPS, 1)) { Return (1) } Else { Return (0) } }
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0x199) },
            ResourceTemplate () { Register (FFixedHW, 16, 0, 0x198) }
        })
        Method (_PSD, 0) { Return (Package () { Package () { 5, 0, 0, 0xFD, 2 } }) }
    }
    Scope (\_PR.CPU1)
    {
        Method (_PSS, 0) { Return (\_PR.CPU0._PSS ()) }
        OperationRegion (IO80, SystemIO, 0x80, 1)
        Field (IO80, ByteAcc, NoLock, Preserve) { PORT, 8 }
        Method (_PPC, 0) { Return (PORT) }
        Name (_PCT, Package ()
        {
            ResourceTemplate () { Register (FFixedHW, 64, 0, 0x199) },
            ResourceTemplate () { Register (FFixedHW, 16, 0, 0x198) }
        })
    }
}
