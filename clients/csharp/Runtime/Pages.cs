// Lists that come in pages.

using System;
using System.Collections.Generic;
using System.Threading.Tasks;

namespace TallyClient
{
    /// <summary>A list of the server, page by page: call <see cref="NextAsync"/> until it is null.</summary>
    public sealed class Pages<T>
    {
        readonly Func<string, Task<Json>> fetch;
        readonly Func<Json, List<T>> items;
        string cursor;
        bool ended;

        internal Pages(Func<string, Task<Json>> fetch, Func<Json, List<T>> items)
        {
            this.fetch = fetch;
            this.items = items;
        }

        /// <summary>The next page, or null behind the last one.</summary>
        public async Task<List<T>> NextAsync()
        {
            if (ended) return null;
            var page = await fetch(cursor).ConfigureAwait(false);
            cursor = page["next_cursor"].Text;
            ended = cursor == null;
            return items(page);
        }

        /// <summary>The next `count` items, or all that are left.</summary>
        public async Task<List<T>> TakeAsync(int count = int.MaxValue)
        {
            var taken = new List<T>();
            List<T> page;
            while (taken.Count < count && (page = await NextAsync().ConfigureAwait(false)) != null) taken.AddRange(page);
            if (taken.Count > count) taken.RemoveRange(count, taken.Count - count);
            return taken;
        }
    }
}
