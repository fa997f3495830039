// P-states for the guest's first processor, handed over by -acpitable. Written for eft.
DefinitionBlock ("", "SSDT", 2, "EFT", "QEMUPSS", 1)
{
    External (\_SB.CPUS.C000, DeviceObj)
    Scope (\_SB)
    {
        Processor (EFT0, 0, 0, 0)
        {
            Name (_PSS, Package ()
            {
                Package () { 2267, 80000, 10, 10, 0, 0 },
                Package () { 1600, 34000, 10, 10, 1, 1 }
            })
            Method (_PPC, 0) { Return (0) }
        }
    }
}
