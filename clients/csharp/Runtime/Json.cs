// JSON without reflection, so that it works where code is compiled ahead of time (IL2CPP).

using System;
using System.Collections.Generic;
using System.Globalization;
using System.Text;

namespace TallyClient
{
    /// <summary>A value of JSON. Numbers keep their digits, so 64-bit integers are exact.</summary>
    public sealed class Json
    {
        public static readonly Json Null = new Json(null, "null");
        readonly object value;
        readonly string number;

        Json(object value, string number)
        {
            this.value = value;
            this.number = number;
        }

        public static Json Of(string text) { return text == null ? Null : new Json(text, null); }
        public static Json Of(long number) { return new Json(null, number.ToString(CultureInfo.InvariantCulture)); }
        public static Json Of(double number) { return new Json(null, number.ToString("R", CultureInfo.InvariantCulture)); }
        public static Json Of(bool truth) { return new Json(truth, null); }
        public static Json Of(IEnumerable<Json> items) { return new Json(new List<Json>(items), null); }
        public static Json Of(IEnumerable<string> items)
        {
            var list = new List<Json>();
            foreach (var item in items) list.Add(Of(item));
            return new Json(list, null);
        }

        /// <summary>An empty object, for <see cref="With(string, Json)"/>.</summary>
        public static Json Object() { return new Json(new Dictionary<string, Json>(), null); }

        /// <summary>Sets a field and returns the object. A null is left out.</summary>
        public Json With(string name, Json field)
        {
            if (field != null) ((Dictionary<string, Json>)value)[name] = field;
            return this;
        }
        public Json With(string name, string field) { return With(name, field == null ? null : Of(field)); }
        public Json With(string name, long? field) { return With(name, field == null ? null : Of(field.Value)); }
        public Json With(string name, bool? field) { return With(name, field == null ? null : Of(field.Value)); }

        public bool IsNull { get { return value == null && number == "null"; } }

        /// <summary>A field of an object; <see cref="Null"/> if there is none.</summary>
        public Json this[string name]
        {
            get
            {
                Json field;
                var fields = value as Dictionary<string, Json>;
                return fields != null && fields.TryGetValue(name, out field) ? field : Null;
            }
        }

        /// <summary>The items of a list; none for other values.</summary>
        public IReadOnlyList<Json> Items { get { return value as List<Json> ?? new List<Json>(); } }

        /// <summary>A text, or the digits of a number; null for null.</summary>
        public string Text { get { return value as string ?? (IsNull ? null : number); } }

        /// <summary>A whole number; 0 for null.</summary>
        public long Long
        {
            get { return Text == null ? 0 : long.Parse(Text, NumberStyles.AllowLeadingSign, CultureInfo.InvariantCulture); }
        }

        public long? LongOrNull { get { return IsNull ? (long?)null : Long; } }

        public double Double
        {
            get
            {
                if (Text == "inf") return double.PositiveInfinity;
                if (Text == "-inf") return double.NegativeInfinity;
                return Text == null ? 0 : double.Parse(Text, NumberStyles.Float, CultureInfo.InvariantCulture);
            }
        }

        public bool Bool { get { return value is bool && (bool)value; } }

        public override string ToString()
        {
            var text = new StringBuilder();
            Write(text);
            return text.ToString();
        }

        void Write(StringBuilder text)
        {
            if (number != null) text.Append(number);
            else if (value is bool) text.Append((bool)value ? "true" : "false");
            else if (value is string) WriteText(text, (string)value);
            else if (value is List<Json>)
            {
                var first = true;
                text.Append('[');
                foreach (var item in (List<Json>)value)
                {
                    if (!first) text.Append(',');
                    first = false;
                    item.Write(text);
                }
                text.Append(']');
            }
            else
            {
                var first = true;
                text.Append('{');
                foreach (var field in (Dictionary<string, Json>)value)
                {
                    if (!first) text.Append(',');
                    first = false;
                    WriteText(text, field.Key);
                    text.Append(':');
                    field.Value.Write(text);
                }
                text.Append('}');
            }
        }

        static void WriteText(StringBuilder text, string value)
        {
            text.Append('"');
            foreach (var c in value)
            {
                if (c == '"' || c == '\\') text.Append('\\').Append(c);
                else if (c < ' ') text.Append("\\u").Append(((int)c).ToString("x4"));
                else text.Append(c);
            }
            text.Append('"');
        }

        /// <summary>Reads one value. Throws <see cref="FormatException"/>.</summary>
        public static Json Parse(string text)
        {
            var at = 0;
            var parsed = Value(text, ref at, 0);
            Blank(text, ref at);
            if (at != text.Length) throw Wrong(at);
            return parsed;
        }

        const int DepthMax = 64;

        static FormatException Wrong(int at) { return new FormatException("no JSON at character " + at); }

        static void Blank(string text, ref int at)
        {
            while (at < text.Length && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t')) at++;
        }

        static char Peek(string text, ref int at)
        {
            Blank(text, ref at);
            if (at >= text.Length) throw Wrong(at);
            return text[at];
        }

        static Json Value(string text, ref int at, int depth)
        {
            if (depth > DepthMax) throw Wrong(at);
            switch (Peek(text, ref at))
            {
                case '{': return new Json(Fields(text, ref at, depth), null);
                case '[': return new Json(List(text, ref at, depth), null);
                case '"': return Of(Quoted(text, ref at));
            }
            var start = at;
            while (at < text.Length && (char.IsLetterOrDigit(text[at]) || "+-.".IndexOf(text[at]) >= 0)) at++;
            var word = text.Substring(start, at - start);
            if (word == "true" || word == "false") return Of(word == "true");
            if (word == "null") return Null;
            double known;
            if (!double.TryParse(word, NumberStyles.Float, CultureInfo.InvariantCulture, out known)) throw Wrong(start);
            return new Json(null, word);
        }

        static Dictionary<string, Json> Fields(string text, ref int at, int depth)
        {
            var fields = new Dictionary<string, Json>();
            at++;
            while (Peek(text, ref at) != '}')
            {
                if (fields.Count > 0) Expect(text, ref at, ',');
                if (Peek(text, ref at) != '"') throw Wrong(at);
                var name = Quoted(text, ref at);
                Expect(text, ref at, ':');
                fields[name] = Value(text, ref at, depth + 1);
            }
            at++;
            return fields;
        }

        static List<Json> List(string text, ref int at, int depth)
        {
            var items = new List<Json>();
            at++;
            while (Peek(text, ref at) != ']')
            {
                if (items.Count > 0) Expect(text, ref at, ',');
                items.Add(Value(text, ref at, depth + 1));
            }
            at++;
            return items;
        }

        static void Expect(string text, ref int at, char wanted)
        {
            if (Peek(text, ref at) != wanted) throw Wrong(at);
            at++;
        }

        static string Quoted(string text, ref int at)
        {
            var value = new StringBuilder();
            for (at++; at < text.Length && text[at] != '"'; at++)
            {
                if (text[at] != '\\') { value.Append(text[at]); continue; }
                if (++at >= text.Length) throw Wrong(at);
                var escaped = "nrtbf".IndexOf(text[at]);
                if (text[at] == 'u')
                {
                    ushort code;
                    var hex = at + 4 < text.Length ? text.Substring(at + 1, 4) : "";
                    if (!ushort.TryParse(hex, NumberStyles.AllowHexSpecifier, CultureInfo.InvariantCulture, out code)) throw Wrong(at);
                    value.Append((char)code);
                    at += 4;
                }
                else value.Append(escaped >= 0 ? "\n\r\t\b\f"[escaped] : text[at]);
            }
            if (at >= text.Length) throw Wrong(at);
            at++;
            return value.ToString();
        }
    }
}
