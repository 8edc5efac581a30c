import java.io.*;
import java.nio.file.*;

// A job of the java universe; its first argument says what it does. Compiled by: javac --release 8 Job.java Helper.java
public class Job {
	public static void main(String[] args) throws Exception {
		System.out.println("arguments: " + String.join("|", args));
		switch (args[0]) {
		case "files":
			System.out.println("option: " + System.getProperty("podstarter.option") + ", of the site: " + System.getProperty("podstarter.site"));
			System.out.println("here: " + new File(".").getCanonicalPath().equals(System.getenv("_CONDOR_SCRATCH_DIR")));
			System.out.println("input: " + new String(Files.readAllBytes(Paths.get("input"))).trim());
			System.out.println("records: " + new File("jvm.start").exists() + " " + new File("jvm.end").length());
			System.out.println("stdin: " + new BufferedReader(new InputStreamReader(System.in)).readLine());
			Files.write(Paths.get("result"), "made\n".getBytes());
			System.err.println("diagnosed");
			return;
		case "helper":
			System.out.println(Helper.word());
			return;
		case "exit":
			System.exit(Integer.parseInt(args[1]));
		case "throw":
			throw new IllegalStateException("thrown on purpose");
		case "memory":
			throw new OutOfMemoryError("thrown on purpose");
		case "kill":
			new ProcessBuilder("/bin/sh", "-c", "kill -9 $PPID").start().waitFor();
			return;
		case "wait":
			Thread.sleep(600_000);
		}
	}
}
