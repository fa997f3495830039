// Processor power management: says where the tables of states lie, and loads them when asked what the system can do.
DefinitionBlock ("", "SSDT", 2, "EFT", "CPUPM", 1)
{
    External (\_SB.PR00, DeviceObj)
    External (\_SB.PR01, DeviceObj)
    External (\_SB.PR02, DeviceObj)
    External (\_SB.PR03, DeviceObj)
    External (\CFGD, FieldUnitObj)
    Scope (\)
    {
        Name (SSDT, Package (6) { "CPU0IST ", 0x8CA9E018, @ist@, "APIST   ", 0x8CA9F018, @ap@ })
        Name (PDC0, 0x80000000)
        Name (SDTL, 0)
    }
    Scope (\_SB.PR00)
    {
        Name (HI0, 0)
        Name (HA0, 0)
        Method (_PDC, 1, NotSerialized)
        {
            CreateDWordField (Arg0, 0x08, CAP0)
            Store (Or (And (PDC0, 0x7FFFFFFF), CAP0), PDC0)
            GCAP ()
        }
        Method (GCAP, 0, NotSerialized)
        {
            If (LNot (And (SDTL, 0x08)))
            {
                Or (SDTL, 0x08, SDTL)
                OperationRegion (IST0, SystemMemory, DerefOf (Index (SSDT, One)), DerefOf (Index (SSDT, 2)))
                Load (IST0, HI0)
            }
            If (LNot (And (SDTL, 0x10)))
            {
                Or (SDTL, 0x10, SDTL)
                OperationRegion (APIS, SystemMemory, DerefOf (Index (SSDT, 4)), DerefOf (Index (SSDT, 5)))
                Load (APIS, HA0)
            }
        }
    }
    Scope (\_SB.PR01) { Method (_PDC, 1) { \_SB.PR00._PDC (Arg0) } }
    Scope (\_SB.PR02) { Method (_PDC, 1) { \_SB.PR00._PDC (Arg0) } }
    Scope (\_SB.PR03) { Method (_PDC, 1) { \_SB.PR00._PDC (Arg0) } }
}
