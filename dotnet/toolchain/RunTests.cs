// Runs the NUnit tests of an assembly on .NET, where NUnit 2's console does not run.
//
// Supports what the tests here use: TestFixture (with arguments), SetUp, TearDown, Test, TestCase, Ignore and
// Assert.Ignore. Usage: RunTests ASSEMBLY [PART-OF-A-NAME]. Exits with 1 when a test failed or none ran.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Reflection;
using NUnit.Framework;

internal static class RunTests
{
    private static int passed;
    private static int failed;
    private static int skipped;

    private static int Main(string[] args)
    {
        if (args.Length < 1 || args.Length > 2)
        {
            Console.Error.WriteLine("usage: RunTests ASSEMBLY [PART-OF-A-NAME]");
            return 2;
        }

        string part = args.Length == 2 ? args[1] : string.Empty;
        Type[] types = Assembly.LoadFrom(args[0]).GetTypes();
        foreach (Type type in types.OrderBy(type => type.FullName, StringComparer.Ordinal))
        {
            if (type.IsAbstract)
            {
                continue;
            }

            foreach (TestFixtureAttribute fixture in type.GetCustomAttributes<TestFixtureAttribute>())
            {
                RunFixture(type, fixture.Arguments ?? new object[0], part);
            }
        }

        Console.WriteLine("{0} passed, {1} failed, {2} skipped", passed, failed, skipped);
        return failed == 0 && passed > 0 ? 0 : 1;
    }

    private static void RunFixture(Type type, object[] arguments, string part)
    {
        string name = type.Name + (arguments.Length == 0 ? string.Empty : "(" + string.Join(", ", arguments) + ")");
        foreach (MethodInfo method in type.GetMethods().OrderBy(method => method.Name, StringComparer.Ordinal))
        {
            List<object?[]> cases =
                method.GetCustomAttributes<TestCaseAttribute>().Select(one => (object?[])one.Arguments).ToList();
            if (method.GetCustomAttribute<TestAttribute>() != null && cases.Count == 0)
            {
                cases.Add(new object?[0]);
            }

            foreach (object?[] values in cases)
            {
                string shown = values.Length == 0 ? string.Empty : "(" + string.Join(", ", values) + ")";
                string test = name + "." + method.Name + shown;
                if (!test.Contains(part))
                {
                    continue;
                }

                if (method.GetCustomAttribute<IgnoreAttribute>() is IgnoreAttribute ignored)
                {
                    Skip(test, ignored.Reason);
                }
                else
                {
                    RunTest(test, type, arguments, method, values);
                }
            }
        }
    }

    private static void RunTest(string test, Type type, object[] arguments, MethodInfo method, object?[] values)
    {
        try
        {
            object fixture = Activator.CreateInstance(type, arguments)!;
            try
            {
                CallAll<SetUpAttribute>(fixture);
                method.Invoke(fixture, values);
            }
            finally
            {
                CallAll<TearDownAttribute>(fixture);
            }

            passed++;
        }
        catch (Exception exception)
        {
            Exception cause = (exception as TargetInvocationException)?.InnerException ?? exception;
            if (cause is IgnoreException)
            {
                Skip(test, cause.Message);
                return;
            }

            failed++;
            Console.WriteLine("FAILED " + test + Environment.NewLine + cause);
        }
    }

    private static void CallAll<TAttribute>(object fixture)
        where TAttribute : Attribute
    {
        foreach (MethodInfo method in fixture.GetType().GetMethods())
        {
            if (method.GetCustomAttribute<TAttribute>() != null)
            {
                method.Invoke(fixture, null);
            }
        }
    }

    private static void Skip(string test, string reason)
    {
        skipped++;
        Console.WriteLine("SKIPPED " + test + ": " + reason);
    }
}
