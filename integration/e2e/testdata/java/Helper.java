// It comes in a jar file.
public class Helper {
	static String word() { return "the helper's word"; }
}
