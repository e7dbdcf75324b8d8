package httpapi

import (
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// pictureRoute adds the route by which the page shows a picture of the web: its own policy lets it load nothing from elsewhere.
func (c *Client) pictureRoute() {
	o := op("fetchPicture", http.MethodGet, "picture", "Fetch a picture of the web that a person asked to see", http.StatusOK)
	o.Description = "From https alone, its usual port, and no address of this machine or of a private network. The host learns this machine's address and nothing else. " +
		"PNG, JPEG, GIF and WebP, at most 10 MiB; a drawing (SVG) is refused."
	o.Parameters = []*huma.Param{inQuery("address", "The address of the picture", true)}
	o.Responses = map[string]*huma.Response{
		"200":     {Description: "The picture", Content: bytesOf("The picture", "image/png", "image/jpeg", "image/gif", "image/webp")},
		"default": c.problemResponse(),
	}
	c.api.OpenAPI().AddOperation(&o)
	c.mux.HandleFunc(o.Method+" "+o.Path, c.sendPicture)
}

func (c *Client) sendPicture(w http.ResponseWriter, r *http.Request) {
	picture, err := c.cfg.Pictures.Fetch(r.Context(), r.URL.Query().Get("address"))
	if err != nil {
		writeClientError(w, problemOf(err))
		return
	}
	guardBytes(w.Header(), picture.MIME)
	w.Header().Set("Content-Length", strconv.Itoa(len(picture.Data)))
	_, _ = w.Write(picture.Data) // fails only when the caller is gone
}
