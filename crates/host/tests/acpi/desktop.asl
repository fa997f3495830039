// Processors as firmware of a desktop declares them, with the states in a table that _PDC loads. Written for eft.
DefinitionBlock ("", "DSDT", 2, "EFT", "DESKTOP", 1)
{
    Scope (\_PR)
    {
        Processor (CPU0, 1, 0x410, 6) {}
        Processor (CPU1, 2, 0x410, 6) {}
    }
    External (\_PR.CPU0._PPC, MethodObj)
    Name (CAPS, 0)
    Name (SIZE, 3)
    Method (\_PR.CPU0._PDC, 1)
    {
        CreateDWordField (Arg0, 8, CAP0)
        Store (CAP0, CAPS)
    }
    Method (FACT, 1)
    {
        If (LLessEqual (Arg0, 1)) { Return (1) }
        Return (Multiply (Arg0, FACT (Subtract (Arg0, 1))))
    }
    Method (TEST, 0)
    {
        Store (Package (4) { 5, 0x1234, "text", Buffer (3) { 1, 2, 3 } }, Local0)
        Store (0, Local1)
        Store (0, Local2)
        While (LLess (Local1, 10))
        {
            Increment (Local1)
            If (LEqual (And (Local1, 1), 1)) { Continue }
            Add (Local2, Local1, Local2)
        }
        Store (Local2, Index (Local0, 0))
        Store (ShiftLeft (DerefOf (Index (Local0, 1)), 4), Index (Local0, 1))
        Store (FACT (5), Local3)
        Divide (Local3, 7, Local4, Local5)
        Return (Package (6) { 1, 2, 3, 4, 5, SIZE })
    }
    Method (SUMS, 0)
    {
        Store (Buffer (8) {}, Local0)
        CreateDWordField (Local0, 2, DW)
        Store (0xCAFEBABE, DW)
        Store (FACT (6), Local1)
        Store (Package (3) { 0, 0, 0 }, Local2)
        Store (Local1, Index (Local2, 0))
        Store (Local0, Index (Local2, 1))
        Store (Concatenate ("a", "b"), Index (Local2, 2))
        Return (Local2)
    }
}
