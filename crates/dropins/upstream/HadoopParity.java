import java.nio.ByteBuffer;
import java.util.Random;
import org.apache.hadoop.io.erasurecode.ErasureCodeNative;
import org.apache.hadoop.io.erasurecode.ErasureCoderOptions;
import org.apache.hadoop.io.erasurecode.rawcoder.NativeRSRawDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.NativeRSRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RSRawEncoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureDecoder;
import org.apache.hadoop.io.erasurecode.rawcoder.RawErasureEncoder;

/**
 * Compares Hadoop's native Reed-Solomon coder, which calls the libisal.so.2 that it finds, with its
 * coder in Java: the same parity for several lengths, and every pattern of losses that can be
 * decoded. Prints what was compared; ends with 1 at the first difference.
 */
final class HadoopParity {
    private static final int[] LENGTHS = {1, 4096, 65536, 65537};

    public static void main(String[] arguments) throws Exception {
        ErasureCodeNative.checkNativeCodeLoaded();
        for (int[] code : new int[][] {{6, 3}, {3, 2}, {10, 4}}) {
            compare(code[0], code[1]);
        }
    }

    private static void compare(int k, int m) throws Exception {
        int patterns = 0;
        for (int length : LENGTHS) {
            ByteBuffer[] data = buffers(k, length);
            for (ByteBuffer buffer : data) {
                byte[] bytes = new byte[length];
                new Random(length * 31L + patterns++).nextBytes(bytes);
                buffer.put(bytes).flip();
            }
            ErasureCoderOptions options = new ErasureCoderOptions(k, m);
            ByteBuffer[] parity = encode(new NativeRSRawEncoder(options), data, m, length);
            same(encode(new RSRawEncoder(options), data, m, length), parity, "parity of " + k + "+" + m);
            patterns = decodeAll(options, concat(data, parity), length);
        }
        System.out.println("Hadoop's native RS(" + k + "," + m + ") has the parity of its coder in Java, for "
            + LENGTHS.length + " lengths; " + patterns + " patterns of losses are decoded");
    }

    /** Loses every set of one to m units in turn. Returns the number of sets. */
    private static int decodeAll(ErasureCoderOptions options, ByteBuffer[] units, int length) throws Exception {
        int m = options.getNumParityUnits();
        int sets = 0;
        for (int lost = 1; lost < 1 << units.length; lost++) {
            if (Integer.bitCount(lost) <= m) {
                decode(new NativeRSRawDecoder(options), units, lost, length);
                sets++;
            }
        }
        return sets;
    }

    private static void decode(RawErasureDecoder decoder, ByteBuffer[] units, int lost, int length) throws Exception {
        ByteBuffer[] there = new ByteBuffer[units.length];
        ByteBuffer[] wanted = new ByteBuffer[Integer.bitCount(lost)];
        int[] numbers = new int[wanted.length];
        int found = 0;
        for (int unit = 0; unit < units.length; unit++) {
            if ((lost >> unit & 1) == 0) {
                there[unit] = units[unit].duplicate();
            } else {
                wanted[found] = units[unit];
                numbers[found++] = unit;
            }
        }
        ByteBuffer[] made = buffers(found, length);
        decoder.decode(there, numbers, made);
        rewind(made);
        same(wanted, made, "decoding of losses " + Integer.toBinaryString(lost));
        decoder.release();
    }

    private static ByteBuffer[] encode(RawErasureEncoder encoder, ByteBuffer[] data, int m, int length)
            throws Exception {
        ByteBuffer[] parity = buffers(m, length);
        encoder.encode(data, parity);
        encoder.release();
        rewind(data);
        rewind(parity);
        return parity;
    }

    private static void same(ByteBuffer[] expected, ByteBuffer[] found, String what) {
        for (int at = 0; at < expected.length; at++) {
            if (!expected[at].equals(found[at])) {
                System.err.println("the " + what + " differs in buffer " + at);
                System.exit(1);
            }
        }
    }

    private static void rewind(ByteBuffer[] buffers) {
        for (ByteBuffer buffer : buffers) {
            buffer.rewind();
        }
    }

    private static ByteBuffer[] buffers(int count, int length) {
        ByteBuffer[] buffers = new ByteBuffer[count];
        for (int at = 0; at < count; at++) {
            buffers[at] = ByteBuffer.allocateDirect(length);
        }
        return buffers;
    }

    private static ByteBuffer[] concat(ByteBuffer[] a, ByteBuffer[] b) {
        ByteBuffer[] all = java.util.Arrays.copyOf(a, a.length + b.length);
        System.arraycopy(b, 0, all, a.length, b.length);
        return all;
    }
}
